#pragma once
// Pieces: the stretches of addresses that a lane reserved.

#include <atomic>
#include <cstdint>

#include "driver/table.hpp"
#include "heap/units.hpp"

namespace weir::vm {

struct lane;

enum class piece_state : std::uint32_t {
  none,     // the record is free
  taken,    // one thread is working on it
  live,     // in the lane's heap
  leftover  // out of the heap, but the driver refused to take the addresses back: used again, or freed later
};

/// Zeroed memory is a free record. The fields pass with the state.
struct piece {
  std::atomic<piece_state> state;
  std::uint32_t first_page;
  std::atomic<std::uint32_t> top;  // no chunk lies at or above this stride of the lane
  std::uint64_t base;              // a multiple of 4 GiB
  std::uint64_t bytes;
  std::uint64_t reservation;  // what the driver gave: larger where it ignores the alignment asked for
  std::uint64_t reserved_bytes;

  [[nodiscard]] std::uint32_t first_stride() const noexcept { return first_page / heap::pages_per_stride; }
  /// Strides that may be mapped: all but the last, so that no run crosses into the next piece.
  [[nodiscard]] std::uint32_t strides() const noexcept {
    return static_cast<std::uint32_t>(bytes >> heap::stride_shift) - 1;
  }
  void raise_top(std::uint32_t end) noexcept {
    std::uint32_t seen = top.load(std::memory_order_relaxed);
    while (seen < end && !top.compare_exchange_weak(seen, end, std::memory_order_release, std::memory_order_relaxed)) {
    }
  }

  bool take(piece_state from) noexcept {
    return state.load(std::memory_order_relaxed) == from &&
           state.compare_exchange_strong(from, piece_state::taken, std::memory_order_acquire,
                                         std::memory_order_relaxed);
  }
};

/// Reserves addresses for at least `pages` contiguous pages and takes them into the lane, all unmapped. On failure
/// nothing has changed. `added` is the piece's record. REQUIRES: the device's context is current.
CUresult add_piece(lane& l, std::uint32_t pages, piece*& added) noexcept;

/// Gives pieces in which nothing is mapped back to the driver. REQUIRES: the device's context is current.
void give_pieces_back(lane& l) noexcept;
/// The same for one piece that was just added.
void give_piece_back(lane& l, piece& p) noexcept;

}  // namespace weir::vm
