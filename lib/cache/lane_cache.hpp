#pragma once
// What one thread keeps of one lane: for each size class a stack of free blocks. Worked in by one thread at a time
// (owner_word.hpp); counts are atomics only so that statistics may read them.
//
// Invariants: count <= capacity <= the class's magazine_limit, except for codes that are no class: their capacity is 0,
// which sends frees of runs, used and pending blocks, and all misuse to the slow path without a branch of its own.

#include <array>
#include <atomic>
#include <cstdint>

#include "cache/owner_word.hpp"
#include "heap/lane_heap.hpp"
#include "heap/state.hpp"

namespace weir::cache {

struct thread_cache;

struct cache_bin {
  std::atomic<std::uint32_t> count;  // written by the owner only
  std::uint32_t capacity;            // earned; 0 in hardened mode, where every free takes the slow path
  void** slots;
  std::atomic<std::uint64_t> allocations;  // hits and refills
  std::atomic<std::int64_t> waste;         // of blocks allocated here, less those freed here, in the class's units
  std::uint32_t block_bytes;
  std::uint8_t waste_shift;
  std::uint8_t waste_offset;
  std::uint8_t waste_mask;
  std::uint8_t limit;  // magazine_limit
};
static_assert(sizeof(cache_bin) == 40);

constexpr std::uint32_t total_slots() {
  std::uint32_t sum = 0;
  for (const auto& c : heap::classes) sum += c.magazine_limit;
  return sum;
}

struct alignas(64) lane_cache {
  owner_word<> owner;
  heap::lane_heap* heap = nullptr;
  thread_cache* thread = nullptr;
  std::atomic<std::uint64_t> seen_work{0};  // what the idle drainer saw last
  std::atomic<std::uint32_t> next{0};       // link of the stack of unused ones
  std::uint32_t index = 0;
  std::uint32_t steal_hand = 0;  // whose capacity is taken next when the budget is spent
  std::array<cache_bin, heap::code_mask + 1> bins{};
  std::array<void*, total_slots()> slots{};

  /// Empty, for `lane`, owned by the calling thread's cache.
  void start(heap::lane_heap& lane, thread_cache& t, bool captured) noexcept;
  [[nodiscard]] std::uint64_t capacity_bytes() const noexcept;
  [[nodiscard]] std::uint64_t cached_bytes() const noexcept;
  [[nodiscard]] std::uint64_t allocation_count() const noexcept;
  /// Changes whenever the cache was used.
  [[nodiscard]] std::uint64_t work() const noexcept;
  /// All blocks back to the spans. REQUIRES: the caller works in the cache (owner or taker). Bytes moved.
  std::uint64_t drain() noexcept;
  /// Gives what was earned back to the thread's budget: the cache starts small again. REQUIRES: as drain.
  void forget_capacity() noexcept;
};

/// Owner-only counters that others read: a plain add, no read-modify-write.
template <class T>
inline void add(std::atomic<T>& counter, T by) noexcept {
  counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

}  // namespace weir::cache
