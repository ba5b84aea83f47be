#pragma once
// Counting what is where.

#include <cstdint>

#include "weir/statistics.hpp"

#include "coordinator/core.hpp"

namespace weir::coordinator {

/// Walks the device's lanes; exact at quiet points.
device_statistics measure(device_state& d) noexcept;

/// Bytes used on the device beyond what Weir holds, as the driver counts; 0 if it cannot be asked.
std::uint64_t used_by_others(device_state& d) noexcept;

/// Notes what is out of the lanes' heaps now for the live peak. Cheap.
void note_live_peak(device_state& d) noexcept;

}  // namespace weir::coordinator
