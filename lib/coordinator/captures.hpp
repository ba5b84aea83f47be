#pragma once
// Announced captures (C7): while one is open on a device, every call of its lanes takes the slow path and asks whether
// its stream takes part in a capture.

#include "coordinator/core.hpp"

namespace weir::coordinator {

/// `key` names the capture for `close_capture`.
void announce_capture(core& c, device_state& d, const void* key, pool_state* pool);
void close_capture(core& c, device_state& d, const void* key) noexcept;

/// The lane to allocate from: that of the capture's pool if the lane's stream is capturing, else the lane itself. Null:
/// no lane could be made.
lane_state* lane_under_capture(lane_state& l) noexcept;

}  // namespace weir::coordinator
