#pragma once
// Taking what other threads cache, from outside: for a request that would fail, for trim, for idle threads' memory, and
// when a lane ends.

#include <cstdint>

#include "cache/thread_cache.hpp"

namespace weir::cache {

struct taken {
  std::uint64_t bytes = 0;    // moved to the lane's spans
  std::uint32_t caches = 0;   // taken
  std::uint32_t refused = 0;  // their threads were inside, and have been asked to hand in at their next call
};

/// Empties the caches of the lane whose threads are not inside a call right now; the others are asked to hand in.
/// Never waits. The calling thread must not be inside a cache; its own is taken too.
taken take_caches(std::uint32_t lane_number) noexcept;

/// The same for those not used since the last call of this function for the lane.
taken take_idle_caches(std::uint32_t lane_number) noexcept;

/// Forgets what the lane's caches hold: the lane has ended. REQUIRES: no thread is in a call of the lane.
void forget_caches(std::uint32_t lane_number) noexcept;

/// Whether caches can be taken (the system has the barrier); else threads only hand in when asked.
bool can_take() noexcept;

}  // namespace weir::cache
