#pragma once
// Growth: more mapped pages for a lane.

#include <cstdint>

#include "vm/device.hpp"
#include "vm/lane.hpp"

namespace weir::vm {

enum class growth { done, out_of_memory, failed };

struct growth_result {
  growth what = growth::failed;
  std::uint32_t first_page = heap::no_page;
  CUresult error = CUDA_SUCCESS;  // of a failure
};

/// Gets `pages` claimed pages (contiguous, at a multiple of `alignment` pages) for the caller. Enters the device's
/// maintenance path, searches the lane's heap again, else extends: claims the free tail below the place, maps chunks
/// for the lack only; mapped pages beyond the need are released as free. On any failure everything is as before.
/// `out_of_memory`: the limit, the device or the addresses do not allow it; `failed`: the driver's own error.
growth_result grow(lane& l, std::uint32_t pages, std::uint32_t alignment) noexcept;

}  // namespace weir::vm
