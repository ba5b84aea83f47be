#pragma once
// Who a stream is, and whether it may be touched.

#include <cstdint>

#include "vm/device.hpp"
#include "vm/lane.hpp"

namespace weir::vm {

/// The stream's identity. REQUIRES: the caller's call names the stream. A stream that is capturing cannot be asked:
/// CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, and the capture is not disturbed. About 30 ns.
std::uint64_t stream_id(device& d, CUstream s, CUresult& error) noexcept;

/// Whether the stream takes part in a capture, or must be left alone because of one. REQUIRES: as above.
bool capturing(device& d, CUstream s) noexcept;

/// Ends the current epoch of the lane's order with an event on its stream, or, if the stream may not be touched and
/// `pressure` allows the context fence, on the context. False: nothing was sealed; `error` if the driver refused.
/// REQUIRES: a driver_scope of the lane's device.
bool seal(lane& l, const lane* inside, bool pressure, CUresult& error) noexcept;

/// Whether `seal` has a way: the lane's stream or the context fence.
[[nodiscard]] bool can_seal(const lane& l, const lane* inside, bool pressure) noexcept;

/// Asks the driver how far the lane's order is. REQUIRES: a driver_scope of the lane's device.
void poll(lane& l) noexcept;

}  // namespace weir::vm
