#pragma once
// All lanes of the process, by number. Records are type-stable: made once, used again when a lane has ended and its
// last handle is gone.

#include <cstdint>

#include "coordinator/lane_state.hpp"

namespace weir::coordinator {

/// A lane record that nobody uses, with its heap; null if all numbers are taken or host memory ran out.
lane_state* acquire_lane() noexcept;

/// Gives the record back. REQUIRES: the lane's heap is empty, no piece is left. Handles may still exist: the record is
/// used again only when there are none.
void release_lane(lane_state& l) noexcept;

/// Records ever made: numbers 1 .. lanes_made().
std::uint32_t lanes_made() noexcept;
/// REQUIRES: 1 <= number <= lanes_made().
lane_state& lane_at(std::uint32_t number) noexcept;

/// Calls each(lane_state&) for the lanes of a service. Lock-free.
template <class Each>
void for_each_lane(const core& c, Each&& each) {
  for (std::uint32_t n = 1; n <= lanes_made(); ++n) {
    lane_state& l = lane_at(n);
    if (l.core.load(std::memory_order_acquire) == &c) each(l);
  }
}

}  // namespace weir::coordinator
