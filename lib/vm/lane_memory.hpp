#pragma once
// What a lane keeps of its physical memory: chunk records, unmapped strides, pieces. Reserved at the lane's first
// growth, kept as long as the lane's record lives.

#include <atomic>
#include <cstdint>

#include "vm/chunk.hpp"
#include "vm/piece.hpp"
#include "vm/stride_map.hpp"

namespace weir::vm {

class lane_memory {
 public:
  static constexpr std::uint32_t most_pieces = heap::lane_slots;

  /// Makes the records, once. Lock-free, no malloc. False: the system refuses memory.
  bool prepare() noexcept;
  [[nodiscard]] bool prepared() const noexcept { return records_.load(std::memory_order_acquire) != nullptr; }

  // REQUIRES for all that follow: prepared.

  [[nodiscard]] stride_map& unmapped() noexcept { return records_.load(std::memory_order_relaxed)->unmapped; }
  [[nodiscard]] chunk& chunk_at(std::uint32_t stride) noexcept {
    return chunks_of(records_.load(std::memory_order_relaxed))[stride];
  }
  [[nodiscard]] piece* pieces() noexcept { return records_.load(std::memory_order_relaxed)->pieces; }

  /// Piece records at or above it were never used.
  [[nodiscard]] std::uint32_t piece_end() const noexcept { return piece_end_.load(std::memory_order_acquire); }
  void raise_piece_end(std::uint32_t end) noexcept;

  /// Calls each(stride, chunk, word) for the chunks, piece by piece in address order, until it returns false.
  template <class Each>
  void each_chunk(Each&& each) noexcept {
    for (std::uint32_t i = 0; i < piece_end(); ++i) {
      const piece& p = pieces()[i];
      if (p.state.load(std::memory_order_acquire) != piece_state::live) continue;
      const std::uint32_t end = p.top.load(std::memory_order_acquire);
      for (std::uint32_t at = p.first_stride(); at < end;) {
        at = unmapped().next_used(at, end);
        if (at >= end) break;
        chunk& c = chunk_at(at);
        const chunk_word w = c.look();
        if (w.state == chunk_state::unmapped) {
          ++at;  // claimed, and not yet recorded
          continue;
        }
        if (!each(at, c, w)) return;
        at += w.strides;
      }
    }
  }

  /// The same from high to low addresses.
  template <class Each>
  void each_chunk_down(Each&& each) noexcept {
    for (std::uint32_t i = piece_end(); i-- > 0;) {
      const piece& p = pieces()[i];
      if (p.state.load(std::memory_order_acquire) != piece_state::live) continue;
      const std::uint32_t first = p.first_stride();
      for (std::uint32_t at = p.top.load(std::memory_order_acquire); at-- > first;) {
        chunk& c = chunk_at(at);
        const chunk_word w = c.look();
        if (w.state != chunk_state::unmapped && !each(at, c, w)) return;
      }
    }
  }

  std::atomic<std::uint64_t> mapped_bytes{0};    // handles of this lane, retiring ones too
  std::atomic<std::uint64_t> retiring_bytes{0};  // of these
  std::atomic<std::uint64_t> address_bytes{0};   // reserved from the driver

 private:
  struct records {
    stride_map unmapped;
    piece pieces[most_pieces];
  };
  static chunk* chunks_of(records* r) noexcept;

  std::atomic<records*> records_{nullptr};
  std::atomic<std::uint32_t> piece_end_{0};
};

}  // namespace weir::vm
