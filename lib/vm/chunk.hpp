#pragma once
// The record of one chunk (a physical handle), kept at its first stride of 2 MiB; records of its further strides are
// zero. One word says what it is, so that every step of its life is one claim.
//
//   unmapped   no chunk begins here
//   mapping    growth is making it; its strides were claimed before
//   mapped     in use; its free pages are in the lane's page heap
//   taken      one thread is working on it
//   retiring   all its pages are taken out of the heap; goes back to the driver when the lane's order passed `epoch`
//
// A chunk with pins (registered, exported, in a capture's pool, movable) is never taken.

#include <atomic>
#include <cstdint>

#include "driver/table.hpp"

namespace weir::vm {

enum class chunk_state : std::uint8_t { unmapped, mapping, mapped, taken, retiring };

/// The word's content: state, whether its address is unmapped already and only the handle is left, pins, length, tag.
struct chunk_word {
  chunk_state state = chunk_state::unmapped;
  bool bare = false;
  std::uint32_t pins = 0;     // 12 bits
  std::uint32_t strides = 0;  // 24 bits
  std::uint32_t tag = 0;      // 24 bits; advances whenever a chunk is made here

  static constexpr std::uint32_t most_pins = 0xfff;

  [[nodiscard]] constexpr std::uint64_t pack() const noexcept {
    return static_cast<std::uint64_t>(state) | std::uint64_t{bare} << 3 | std::uint64_t{pins & most_pins} << 4 |
           std::uint64_t{strides & 0xffffff} << 16 | std::uint64_t{tag & 0xffffff} << 40;
  }
  static constexpr chunk_word unpack(std::uint64_t w) noexcept {
    return {static_cast<chunk_state>(w & 7), (w >> 3 & 1) != 0, static_cast<std::uint32_t>(w >> 4) & most_pins,
            static_cast<std::uint32_t>(w >> 16) & 0xffffff, static_cast<std::uint32_t>(w >> 40)};
  }
};

/// Zeroed memory is a stride without a chunk.
struct chunk {
  std::atomic<std::uint64_t> word;
  CUmemGenericAllocationHandle handle;
  std::atomic<std::uint64_t> epoch;  // of the lane's order; 0: nothing to wait for
  std::uint64_t spare;               // for views: the first second mapping

  [[nodiscard]] chunk_word look() const noexcept { return chunk_word::unpack(word.load(std::memory_order_acquire)); }

  /// From `seen` to `then`, if nothing changed meanwhile. Release and acquire: the record's fields pass with it.
  bool change(const chunk_word& seen, const chunk_word& then) noexcept {
    std::uint64_t expected = seen.pack();
    return word.compare_exchange_strong(expected, then.pack(), std::memory_order_acq_rel, std::memory_order_relaxed);
  }
  /// REQUIRES: the caller took it.
  void set(const chunk_word& then) noexcept { word.store(then.pack(), std::memory_order_release); }

  /// Keeps the chunk from views, release and moves until `unpin`. False: somebody is at work on it; ask again.
  bool pin() noexcept {
    chunk_word seen = look();
    while (seen.state == chunk_state::mapped && seen.pins < chunk_word::most_pins) {
      chunk_word then = seen;
      ++then.pins;
      if (change(seen, then)) return true;
      seen = look();
    }
    return false;
  }
  void unpin() noexcept {
    for (;;) {
      const chunk_word seen = look();
      chunk_word then = seen;
      --then.pins;
      if (change(seen, then)) return;
    }
  }
};
static_assert(sizeof(chunk) == 32);

}  // namespace weir::vm
