#pragma once
// The hits: no lock, no atomic read-modify-write, no call (C1). An allocation and a free together are counted by
// tests/instructions, which holds them to the number kept there.
//
//   lane::allocate ─ allocate_hit ─► the thread's cache of the lane ─► a block
//                  └ (null) coordinator::allocate ─ cache::allocate_miss ─► bin, spans, pages ─ (null) the ladder
//   lane::deallocate ─ deallocate_hit ─► the thread's cache
//                    └ (false) coordinator::deallocate ─ cache::deallocate_miss, runs, pending, misuse

#include <array>
#include <cstddef>
#include <cstdint>

#include "cache/thread_cache.hpp"
#include "heap/range_table.hpp"

#define WEIR_FAST_PATH inline __attribute__((always_inline))
#define WEIR_SLOW_PATH __attribute__((noinline, cold))

namespace weir::cache {

namespace detail {

// Where the bin of a size lies in a lane cache. Entry i: bytes in (i * 256, (i + 1) * 256].
constexpr auto make_bin_offsets() {
  std::array<std::uint16_t, heap::class_of_granules.size() - 1> table{};
  for (std::size_t i = 0; i < table.size(); ++i) {
    const std::size_t index =
        static_cast<heap::state_byte>(heap::code_of(heap::class_of_granules[i + 1]) | heap::live_bit);
    table[i] = static_cast<std::uint16_t>(offsetof(lane_cache, bins) + index * sizeof(cache_bin));
  }
  return table;
}
inline constexpr auto bin_offsets = make_bin_offsets();
static_assert(offsetof(lane_cache, bins) + 256 * sizeof(cache_bin) < 1u << 16);

// One base register for all fields of the bin; left alone, compilers compute each field's address anew.
WEIR_FAST_PATH cache_bin* bin_at(lane_cache* c, std::size_t offset) noexcept {
  auto* b = reinterpret_cast<cache_bin*>(reinterpret_cast<char*>(c) + offset);
#if defined(__GNUC__)
  __asm__("" : "+r"(b));
#endif
  return b;
}

}  // namespace detail

/// Makes a free block live: its waste (in the class's units) and its state byte. The waste goes first: a block of one
/// granule has no room for it, and the state overwrites it.
WEIR_FAST_PATH void make_live(const cache_bin& b, heap::atomic_state* state, std::uint32_t waste) noexcept {
  state[b.waste_offset].store(static_cast<heap::state_byte>(waste), std::memory_order_relaxed);
  state[0].store(b.live_state, std::memory_order_relaxed);
}

/// A block of the lane from the thread's cache; else what `miss()` gives: the cache has none, or `bytes` is zero or
/// more than max_small_bytes.
template <class Miss>
WEIR_FAST_PATH void* allocate_hit(std::uint32_t lane_number, std::size_t bytes,
                                  Miss&& miss) noexcept(noexcept(miss())) {
  const std::size_t less_one = bytes - 1;
  if (less_one >= max_small_bytes) [[unlikely]]
    return miss();
  lane_cache* c = current->lanes[lane_number].load(std::memory_order_relaxed);  // only this thread stores it
  if (c == nullptr) [[unlikely]]
    return miss();
  cache_bin& b = *detail::bin_at(c, detail::bin_offsets[less_one >> heap::granule_shift]);
  if (!c->owner.enter()) [[unlikely]] {
    c->owner.leave();
    return miss();
  }
  cached_block* top = b.top.load(std::memory_order_relaxed);
  if (top == b.bottom) [[unlikely]] {
    c->owner.leave();
    return miss();
  }
  --top;
  void* block = top->address;
  b.top.store(top, std::memory_order_relaxed);
  count_one(b.allocations);
  make_live(b, top->state, (b.block_bytes - static_cast<std::uint32_t>(bytes)) >> b.waste_shift);
  c->owner.leave();
  return block;
}

/// No lane named: the block's own.
inline constexpr std::uint32_t own_lane = 0xffffffff;

/// Puts a live block into the thread's cache of its lane. False: no hit, nothing was changed. Named: `lane_number` is
/// the lane in whose order it is freed, and must be the block's own.
template <bool Named>
WEIR_FAST_PATH bool deallocate_hit(void* block, std::uint32_t lane_number) noexcept {
  const auto address = reinterpret_cast<std::uint64_t>(block);
  // Beyond 48 bits, or not a granule's start: one test for both.
  if ((address & ~((std::uint64_t{heap::range_count} << heap::slot_shift) - heap::granule_bytes)) != 0) [[unlikely]] {
    return false;
  }
  const std::uint64_t index = address >> heap::slot_shift;
  const std::uint32_t lane = heap::range_lane[index].load(std::memory_order_acquire);
  // Addresses that are not ours have lane 0, which no thread has a cache of.
  if (Named && lane != lane_number) [[unlikely]]
    return false;
  lane_cache* c = current->lanes[lane].load(std::memory_order_relaxed);
  if (c == nullptr) [[unlikely]]
    return false;
  heap::atomic_state* state = heap::state_of(address);
  const heap::state_byte byte = state->load(std::memory_order_relaxed);
  cache_bin& b = *detail::bin_at(c, offsetof(lane_cache, bins) + byte * sizeof(cache_bin));
  if (!c->owner.enter()) [[unlikely]] {
    c->owner.leave();
    return false;
  }
  cached_block* top = b.top.load(std::memory_order_relaxed);
  if (top >= b.end) [[unlikely]] {
    c->owner.leave();
    return false;
  }
  *top = {block, state};
  b.top.store(top + 1, std::memory_order_relaxed);
  state->store(b.free_state, std::memory_order_relaxed);
  c->owner.leave();
  return true;
}

}  // namespace weir::cache
