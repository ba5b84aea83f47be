#pragma once
// Which devices may use a device's memory.

#include <cstdint>

#include "vm/device.hpp"

namespace weir::vm {

/// Lets other devices (one bit an ordinal) use all memory of `d`: what is mapped now, and from the next growth on.
/// CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, with nothing changed, if one of them has no path to it. Any other failure
/// leaves the set as it was; chunks that were reached before it keep the wider access. About 25 us a chunk.
CUresult share_with(device& d, std::uint64_t devices) noexcept;

}  // namespace weir::vm
