#pragma once
// How large a handle is made. Setting access costs per handle, not per byte, so handles are about 10 MiB; a huge
// request gets larger ones, the more so the larger its share of all memory: such memory is seldom cut up again.

#include <algorithm>
#include <cstdint>

#include "heap/units.hpp"

namespace weir::vm {

/// 10 MiB: the least that growth adds where it can, and the usual size of a handle.
inline constexpr std::uint32_t usual_chunk_strides = 5;

constexpr std::uint32_t strides_for(std::uint64_t bytes) noexcept {
  return static_cast<std::uint32_t>((bytes + heap::stride_bytes - 1) >> heap::stride_shift);
}

/// Largest handle for a request of `bytes` while `reserved` bytes are held. `configured` (bytes) overrides if not 0.
constexpr std::uint32_t chunk_strides(std::uint64_t bytes, std::uint64_t reserved, std::uint64_t configured) noexcept {
  if (configured != 0) return std::max(1u, strides_for(configured));
  // n * min(1, n / reserved) / 6
  const double n = static_cast<double>(bytes);
  const double share = reserved == 0 ? 1.0 : std::min(1.0, n / static_cast<double>(reserved));
  return std::max(usual_chunk_strides, strides_for(static_cast<std::uint64_t>(n * share / 6)));
}

}  // namespace weir::vm
