#pragma once
// The slow path of a free: what is no hit in the thread cache. Total (C4): no allocation, driver call, exception or
// wait.

#include "coordinator/core.hpp"

namespace weir::coordinator {

/// Frees in the order of `freed_in`, or of the block's own lane (null). `from`: the service that was called, or null.
void deallocate(void* block, lane_state* freed_in, const core* from) noexcept;

}  // namespace weir::coordinator
