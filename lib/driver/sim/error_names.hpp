#pragma once
// Names of driver results, for a machine without a driver.

#include <cuda.h>

namespace weir::sim {

/// As cuGetErrorName: "CUDA_ERROR_OUT_OF_MEMORY". Unknown numbers give CUDA_ERROR_INVALID_VALUE and null.
CUresult error_name(CUresult error, const char** name);
/// As cuGetErrorString: "out of memory", made from the name.
CUresult error_string(CUresult error, const char** text);

}  // namespace weir::sim
