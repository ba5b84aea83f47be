#pragma once
// A driver result as text, with no driver needed to name it.

#include <string>
#include <string_view>

#include "driver/table.hpp"

namespace weir::driver {

/// "cuMemMap: CUDA_ERROR_OUT_OF_MEMORY (2)". The name comes from the table; without one it reads "error (2)".
std::string describe(const table& t, std::string_view call_name, CUresult result);

/// True for results that say the device or its context is lost: nothing but a reset helps, and every later call of that
/// context gives the same. Such an error is passed on as itself, never turned into out of memory.
bool is_sticky(CUresult result) noexcept;

/// True for results that say the driver is shutting down or gone: only at teardown may they be swallowed.
constexpr bool is_gone(CUresult result) noexcept {
  return result == CUDA_ERROR_DEINITIALIZED || result == CUDA_ERROR_CONTEXT_IS_DESTROYED ||
         result == CUDA_ERROR_NOT_INITIALIZED;
}

}  // namespace weir::driver
