#pragma once
// Memory on its way back to the driver.

#include <cstdint>

#include "vm/device.hpp"
#include "vm/lane.hpp"

namespace weir::vm {

/// Takes chunks whose pages are all free out of the lane, from the highest address down, until the device holds at most
/// `keep` bytes; fences them with one event on the lane's stream (or the context fence) and unmaps and releases those
/// whose fence is reached now. The rest stays `retiring` for finish_retiring. Pieces in which nothing is mapped go
/// back. Does nothing while a hold lives. `inside`: the lane whose stream the caller names right now, or null. Returns
/// the bytes released now.
std::uint64_t retire_free_chunks(lane& l, std::uint64_t keep, const lane* inside = nullptr) noexcept;

/// Finishes what is retiring and whose fence is reached. Returns the bytes released.
std::uint64_t finish_retiring(device& d) noexcept;
/// The same for a caller on the maintenance path with the device's context current.
std::uint64_t finish_retiring_inside(device& d) noexcept;

/// Gives the lane's own retiring chunks back to its heap: no driver call. Returns their bytes.
std::uint64_t reclaim_retiring(lane& l) noexcept;

[[nodiscard]] std::uint64_t retiring_bytes(const device& d) noexcept;

/// All work of the device is done: every fence of it counts as reached.
void quiesced(device& d) noexcept;

/// Takes a lane that ended out of its device's list, so that its record may serve another. False: it still holds
/// chunks, addresses, fences or pending blocks.
bool release_lane(lane& l) noexcept;

}  // namespace weir::vm
