#pragma once
// One thread's caches, found by one thread-local pointer. They come from reserved memory, so a thread's first call
// needs no malloc; a thread that ends leaves its cache, contents and all, to be adopted by the next one.

#include <array>
#include <atomic>
#include <cstdint>

#include "cache/lane_cache.hpp"

namespace weir::cache {

inline constexpr std::uint32_t most_lanes = 1u << 14;    // lanes of all services at one time
inline constexpr std::uint32_t most_threads = 1u << 14;  // threads at one time that have a cache

struct thread_cache {
  std::atomic<std::uint32_t> next;  // link of the stack of orphans
  std::uint32_t index;
  std::atomic<std::uint64_t> room_bytes;  // earned over all lanes: at most the budget
  std::uint32_t lanes_end;                // no lane at or above this number
  std::uint32_t steal_hand;               // the lane whose room is taken next when the budget is spent
  std::uint32_t steal_tries;
  std::array<std::atomic<lane_cache*>, most_lanes> lanes;  // by lane number
};

/// A cache with no lane: what a thread has that has none yet, none any more, or that is a forked child's.
[[gnu::visibility("hidden")]] extern thread_cache no_cache;

/// The calling thread's cache, or &no_cache.
[[gnu::visibility("hidden")]] extern constinit thread_local thread_cache* current;

/// Most bytes a thread caches over all lanes (config.thread_cache); process-wide, the last service's setting.
extern std::atomic<std::uint64_t> thread_budget;

/// Reserves the process's caches and hooks thread exit and fork; idempotent. False if the system refuses.
bool start_caches() noexcept;

/// False in a forked child: its threads' caches, and the driver, are the parent's.
bool usable_here() noexcept;

/// The calling thread's cache, adopted or fresh; null if all are in use or the thread is in its last exit round.
thread_cache* attach_thread() noexcept;

/// The calling thread's cache of the lane, made if need be and entered (`owner.leave` ends it); null: go without.
lane_cache* enter_lane(heap::lane_heap& lane) noexcept;

/// Thread caches in use now.
std::uint32_t thread_count() noexcept;

/// Calls `each(lane_cache&)` for every cache of the lane, whoever's. The caches are type-stable.
template <class Each>
void for_each_cache(std::uint32_t lane_number, Each&& each) noexcept;

/// Whether caches of the lane send their calls through the slow path: a capture is announced.
void set_captured(std::uint32_t lane_number, bool on) noexcept;

namespace detail {
thread_cache* thread_at(std::uint32_t index) noexcept;
std::uint32_t threads_made() noexcept;
lane_cache* take_lane_cache() noexcept;
void recycle(lane_cache& c) noexcept;
bool captured(std::uint32_t lane_number) noexcept;
}  // namespace detail

template <class Each>
void for_each_cache(std::uint32_t lane_number, Each&& each) noexcept {
  for (std::uint32_t i = 0; i < detail::threads_made(); ++i) {
    lane_cache* c = detail::thread_at(i)->lanes[lane_number].load(std::memory_order_acquire);
    if (c != nullptr) each(*c);
  }
}

}  // namespace weir::cache
