#pragma once
// A span: a run cut into equal blocks of one class. One bit a block; set means free *in the span*.
//
// Its life is one word: state, number of free blocks, tag.
//   owned     one thread popped or made it; only that thread clears bits
//   listed    on (or on its way to) the lane's list, at least one block free
//   full      no block free, on no list
//   released  its pages went back to the page heap
// A free sets its bit, then adds one to the word; the one that takes it from full to listed puts it on the list. Only
// an owner releases, when the number equals the capacity: then every free has finished both steps. The owner takes at
// most as many bits as the word says: so many are certainly set. (Explored in m_span; the obvious variants fail.)
//
// Orders. (1) a free's bit, release, pairs with (2) the owner's look, acquire: the block passes on. (3) the word's
// updates are acquire-release: releasing pages comes after all frees of the span.

#include <atomic>
#include <bit>
#include <cstdint>

#include "heap/units.hpp"

namespace weir::heap {

enum class span_state : std::uint8_t { released, owned, listed, full };

template <template <class> class Atom = std::atomic>
struct span {
  static constexpr std::uint32_t words = 4;

  Atom<std::uint64_t> word;
  Atom<std::uint64_t> bits[words];
  Atom<std::uint32_t> next;  // link of the lane's list
  std::uint32_t first_page;
  std::uint16_t blocks;
  std::uint8_t cls;

  static constexpr std::uint64_t pack(span_state s, std::uint32_t count, std::uint64_t tag) noexcept {
    return static_cast<std::uint64_t>(s) | std::uint64_t{count} << 2 | tag << 12;
  }
  static constexpr span_state state_of(std::uint64_t w) noexcept { return static_cast<span_state>(w & 3); }
  static constexpr std::uint32_t count_of(std::uint64_t w) noexcept { return w >> 2 & 0x3ff; }
  static constexpr std::uint64_t tag_of(std::uint64_t w) noexcept { return w >> 12; }

  /// Makes the span, all blocks free, owned by the caller. REQUIRES: the caller claimed its pages.
  void open(std::uint32_t page, std::uint8_t of_class, std::uint32_t capacity) noexcept {
    first_page = page;
    cls = of_class;
    blocks = static_cast<std::uint16_t>(capacity);
    for (std::uint32_t i = 0; i < words; ++i) {
      const std::uint32_t below = i * 64;
      const std::uint32_t here = capacity <= below ? 0 : capacity - below;
      bits[i].store(here >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << here) - 1, std::memory_order_relaxed);
    }
    const std::uint64_t tag = tag_of(word.load(std::memory_order_relaxed)) + 1;
    word.store(pack(span_state::owned, capacity, tag), std::memory_order_release);
  }

  /// Gives a block back. True: the caller has to put the span on the list.
  [[nodiscard]] bool give(std::uint32_t block) noexcept {
    bits[block / 64].fetch_or(std::uint64_t{1} << block % 64, std::memory_order_release);  // (1)
    std::uint64_t seen = word.load(std::memory_order_relaxed);
    for (;;) {
      const bool was_full = state_of(seen) == span_state::full;
      const std::uint64_t then =
          was_full ? pack(span_state::listed, 1, tag_of(seen) + 1) : seen + pack(span_state::released, 1, 0);
      if (word.compare_exchange_weak(seen, then, std::memory_order_acq_rel, std::memory_order_relaxed)) return was_full;
    }
  }

  /// After popping it from the list. REQUIRES: listed.
  void own() noexcept { change(span_state::owned); }

  /// Takes up to `want` blocks; `each(block)` is told of each. REQUIRES: owned by the caller.
  template <class Each>
  std::uint32_t take(std::uint32_t want, Each&& each) noexcept {
    const std::uint32_t certain = count_of(word.load(std::memory_order_acquire));  // (3)
    if (want > certain) want = certain;
    std::uint32_t taken = 0;
    for (std::uint32_t i = 0; i < words && taken < want; ++i) {
      std::uint64_t here = bits[i].load(std::memory_order_acquire);  // (2)
      std::uint64_t mask = 0;
      while (here != 0 && taken < want) {
        const auto bit = static_cast<std::uint32_t>(std::countr_zero(here));
        mask |= std::uint64_t{1} << bit;
        here &= here - 1;
        each(i * 64 + bit);
        ++taken;
      }
      if (mask != 0) bits[i].fetch_and(~mask, std::memory_order_acquire);  // only the owner clears
    }
    word.fetch_sub(pack(span_state::released, taken, 0), std::memory_order_acq_rel);
    return taken;
  }

  /// Ends ownership: full, or listed (true: the caller has to put it on the list).
  [[nodiscard]] bool close() noexcept {
    std::uint64_t seen = word.load(std::memory_order_relaxed);
    for (;;) {
      const auto then = count_of(seen) == 0 ? span_state::full : span_state::listed;
      if (word.compare_exchange_weak(seen, pack(then, count_of(seen), tag_of(seen) + 1), std::memory_order_acq_rel,
                                     std::memory_order_relaxed)) {
        return then == span_state::listed;
      }
    }
  }

  /// Releases it if all blocks are free: the caller then gives its pages back. REQUIRES: owned by the caller.
  [[nodiscard]] bool release() noexcept {
    std::uint64_t seen = word.load(std::memory_order_acquire);
    if (count_of(seen) != blocks) return false;
    // No block is out, so nobody else changes the word.
    word.store(pack(span_state::released, 0, tag_of(seen) + 1), std::memory_order_release);
    return true;
  }

  [[nodiscard]] std::uint32_t free_blocks() const noexcept { return count_of(word.load(std::memory_order_acquire)); }

 private:
  void change(span_state to) noexcept {
    std::uint64_t seen = word.load(std::memory_order_relaxed);
    while (!word.compare_exchange_weak(seen, pack(to, count_of(seen), tag_of(seen) + 1), std::memory_order_acq_rel,
                                       std::memory_order_relaxed)) {
    }
  }
};

static_assert(sizeof(span<>) <= 64);

}  // namespace weir::heap
