#pragma once
// The maintenance thread: retires pending frees, finishes what is on its way back to the driver, drains idle threads'
// caches. Everything it does is also done inline, so a process without it works.

#include "coordinator/core.hpp"

namespace weir::coordinator {

/// Starts it at the first growth, if the configuration has one.
void start_maintenance(core& c) noexcept;
void end_maintenance(core& c) noexcept;

/// One round, by anybody. `idle`: also drain caches that were not used since the last such round.
void maintain(core& c, bool idle) noexcept;

}  // namespace weir::coordinator
