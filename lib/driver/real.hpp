#pragma once
// The installed driver, opened at run time: nothing links libcuda.

#include <string>

#include "driver/table.hpp"

namespace weir::driver {

/// Oldest driver that is accepted, as cuDriverGetVersion spells it: 12.4 (branch 550). Weir needs cuStreamGetId (12.0),
/// to know streams although their handles are reused; cuStreamGetCaptureInfo with edge data (12.3); and physical host
/// memory at a NUMA node (12.2). 12.4 is the oldest branch still kept that has them all. cuCtxRecordEvent (12.5) is
/// optional: without it there is no context fence.
inline constexpr int minimum_driver = 12040;

struct real_driver {
  const table* functions = nullptr;  // null if there is no usable driver
  std::string error;                 // then one line that says why
  int version = 0;                   // 13000 means CUDA 13.0; 0 if it could not be asked
};

/// Opens the driver's library and fills a table, without cuInit: no device is touched. The table lives as long as the
/// process (the library is never closed). Safe from any thread; each call that succeeds gives the same table.
real_driver open_real_driver();

/// As open_real_driver, with the library named by the caller: for tests of what an absent or old driver gives.
/// The caller gets a table of its own in `into`.
real_driver open_driver_library(const char* library, table& into);

}  // namespace weir::driver
