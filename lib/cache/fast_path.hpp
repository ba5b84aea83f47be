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
constexpr auto make_code_of_granules() {
  std::array<heap::state_byte, heap::class_of_granules.size()> table{};
  for (std::size_t i = 1; i < table.size(); ++i) table[i] = heap::code_of(heap::class_of_granules[i]);
  return table;
}
inline constexpr auto code_of_granules = make_code_of_granules();
}  // namespace detail

/// REQUIRES: 1 <= bytes <= max_small_bytes.
constexpr heap::state_byte code_for(std::size_t bytes) noexcept {
  return detail::code_of_granules[(bytes + heap::granule_bytes - 1) >> heap::granule_shift];
}

/// Makes a free block live: its state byte and its waste. The waste goes first: a block of one granule has no room for
/// it, and the state overwrites it.
WEIR_FAST_PATH void make_live(heap::atomic_state* state, const cache_bin& b, heap::state_byte code,
                              std::uint32_t waste) noexcept {
  state[b.waste_offset].store(static_cast<heap::state_byte>(waste), std::memory_order_relaxed);
  state[0].store(code | heap::live_bit, std::memory_order_relaxed);
}

/// The waste of a block in its class's units (at most 127).
WEIR_FAST_PATH std::uint32_t waste_of(const cache_bin& b, std::size_t bytes) noexcept {
  return (b.block_bytes - static_cast<std::uint32_t>(bytes)) >> b.waste_shift;
}

/// A block of the lane from the thread's cache, or null: a miss, zero bytes, or more than max_small_bytes.
WEIR_FAST_PATH void* allocate_hit(std::uint32_t lane_number, std::size_t bytes) noexcept {
  if (bytes - 1 >= max_small_bytes) [[unlikely]]
    return nullptr;
  thread_cache* t = current;
  if (t == nullptr) [[unlikely]]
    return nullptr;
  lane_cache* c = t->lanes[lane_number].load(std::memory_order_relaxed);  // only this thread stores it
  if (c == nullptr) [[unlikely]]
    return nullptr;
  const heap::state_byte code = code_for(bytes);
  cache_bin& b = c->bins[code];
  if (!c->owner.enter()) [[unlikely]] {
    c->owner.leave();
    return nullptr;
  }
  const std::uint32_t count = b.count.load(std::memory_order_relaxed);
  if (count == 0) [[unlikely]] {
    c->owner.leave();
    return nullptr;
  }
  void* block = b.slots[count - 1];
  b.count.store(count - 1, std::memory_order_relaxed);
  const std::uint32_t waste = waste_of(b, bytes) & b.waste_mask;
  add(b.allocations, std::uint64_t{1});
  add(b.waste, std::int64_t{waste});
  const auto address = reinterpret_cast<std::uint64_t>(block);
  heap::atomic_state* states = heap::range_table[address >> heap::slot_shift].states.load(std::memory_order_relaxed);
  make_live(states + heap::granule_in_slot(address), b, code, waste);
  c->owner.leave();
  return block;
}

/// No lane named: the block's own.
inline constexpr std::uint32_t own_lane = 0xffffffff;

/// Puts a live block into the thread's cache of its lane. False: not a hit, nothing was changed. `lane_number`: the
/// lane in whose order it is freed.
WEIR_FAST_PATH bool deallocate_hit(void* block, std::uint32_t lane_number = own_lane) noexcept {
  const auto address = reinterpret_cast<std::uint64_t>(block);
  const std::uint64_t index = address >> heap::slot_shift;
  if (index >= heap::range_count || (address & (heap::granule_bytes - 1)) != 0) [[unlikely]]
    return false;
  const heap::range_entry& e = heap::range_table[index];
  heap::atomic_state* states = e.states.load(std::memory_order_acquire);
  thread_cache* t = current;
  if (states == nullptr || t == nullptr) [[unlikely]]
    return false;
  heap::atomic_state* state = states + heap::granule_in_slot(address);
  const std::uint32_t byte = state[0].load(std::memory_order_relaxed);
  const std::uint32_t lane = e.lane.load(std::memory_order_relaxed);
  lane_cache* c = t->lanes[lane].load(std::memory_order_relaxed);
  if (byte < heap::live_bit || c == nullptr) [[unlikely]]
    return false;
  if (lane_number != own_lane && lane != lane_number) [[unlikely]]
    return false;
  cache_bin& b = c->bins[byte & heap::code_mask];
  if (!c->owner.enter()) [[unlikely]] {
    c->owner.leave();
    return false;
  }
  const std::uint32_t count = b.count.load(std::memory_order_relaxed);
  if (count >= b.capacity) [[unlikely]] {
    c->owner.leave();
    return false;
  }
  add(b.waste, -std::int64_t{state[b.waste_offset].load(std::memory_order_relaxed) & b.waste_mask});
  b.slots[count] = block;
  b.count.store(count + 1, std::memory_order_relaxed);
  state[0].store(static_cast<heap::state_byte>(byte & heap::code_mask), std::memory_order_relaxed);
  c->owner.leave();
  return true;
}

}  // namespace weir::cache
