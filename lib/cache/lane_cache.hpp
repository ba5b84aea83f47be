#pragma once
// What one thread keeps of one lane: for each size class a stack of free blocks. Worked in by one thread at a time
// (owner_word.hpp); counts are atomics only so that statistics may read them.
//
// Invariant: count <= room <= the class's magazine_limit. Bins are indexed by state byte. One that is not of a live
// class has no room: frees of runs and used blocks, and misuse, go to the slow path without a branch of their own.

#include <array>
#include <atomic>
#include <cstdint>

#include "cache/owner_word.hpp"
#include "heap/lane_heap.hpp"
#include "heap/state.hpp"

namespace weir::cache {

struct thread_cache;

/// A free block, and where its state byte is: a hit then need not look it up.
struct cached_block {
  void* address;
  heap::atomic_state* state;
};

/// A stack of free blocks, and what a hit needs to know of the class.
struct alignas(64) cache_bin {
  std::atomic<cached_block*> top;  // above the uppermost block; written by the owner only
  cached_block* bottom;
  cached_block* end;                       // bottom + room; in hardened mode bottom: every free takes the slow path
  std::atomic<std::uint64_t> allocations;  // hits and refills
  std::uint32_t block_bytes;
  std::uint8_t waste_shift;
  std::uint8_t waste_offset;
  heap::state_byte live_state;  // its own index
  heap::state_byte free_state;
  std::uint8_t limit;                // magazine_limit
  std::atomic<std::uint32_t> room_;  // blocks it may keep: earned, and counted in the thread's room_bytes

  [[nodiscard]] std::uint32_t count() const noexcept {
    return static_cast<std::uint32_t>(top.load(std::memory_order_relaxed) - bottom);
  }
  [[nodiscard]] std::uint32_t room() const noexcept { return room_.load(std::memory_order_relaxed); }
  void set_count(std::uint32_t n) noexcept { top.store(bottom + n, std::memory_order_relaxed); }
};
static_assert(sizeof(cache_bin) == 64);

constexpr std::uint32_t total_slots() {
  std::uint32_t sum = 0;
  for (const auto& c : heap::classes) sum += c.magazine_limit;
  return sum;
}

struct alignas(64) lane_cache {
  std::array<cache_bin, 256> bins{};  // first: a state byte is all it takes to find one
  owner_word<> owner;
  heap::lane_heap* heap = nullptr;
  thread_cache* thread = nullptr;
  std::atomic<std::uint64_t> seen_work{0};  // what the idle drainer saw last
  std::atomic<std::uint32_t> next{0};       // link of the stack of unused ones
  std::uint32_t index = 0;
  std::uint32_t steal_hand = 0;  // whose room is taken next when the budget is spent
  std::array<cached_block, total_slots()> slots{};

  cache_bin& bin_of(std::uint32_t cls) noexcept { return bins[heap::code_of(cls) | heap::live_bit]; }

  /// Empty, for `lane`, owned by the calling thread's cache.
  void start(heap::lane_heap& lane, thread_cache& t, bool captured) noexcept;
  /// Makes the bins of a cache that was never used.
  void lay_out() noexcept;
  /// What the bins may keep.
  [[nodiscard]] std::uint64_t room_bytes() const noexcept;
  [[nodiscard]] std::uint64_t cached_bytes() const noexcept;
  [[nodiscard]] std::uint64_t allocation_count() const noexcept;
  /// Changes whenever the cache was used.
  [[nodiscard]] std::uint64_t work() const noexcept;
  /// All blocks back to the spans. REQUIRES: the caller works in the cache (owner or taker). Bytes moved.
  std::uint64_t drain() noexcept;
  /// Adds the counts of allocations to the lane's own: whatever becomes of the cache, they are counted once. REQUIRES:
  /// as drain.
  void hand_over_counts() noexcept;
  /// Gives all room back to the thread's budget: the cache starts small again. REQUIRES: as drain.
  void forget_room() noexcept;
  /// Sets a bin's room and counts the change.
  void set_room(cache_bin& b, std::uint32_t room) noexcept;
};

/// A counter that only the owner changes and others read: no read-modify-write. One instruction where the compiler
/// would take three.
inline void count_one(std::atomic<std::uint64_t>& counter) noexcept {
#if defined(__x86_64__) && !WEIR_CACHE_SEQ_CST
  __asm__("incq %0" : "+m"(counter));
#else
  counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
#endif
}

}  // namespace weir::cache
