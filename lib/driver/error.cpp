#include "driver/error.hpp"

namespace weir::driver {

std::string describe(const table& t, std::string_view call_name, CUresult result) {
  const char* name = nullptr;
  if (t.cuGetErrorName == nullptr || t.cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) name = "error";
  return std::string(call_name) + ": " + name + " (" + std::to_string(static_cast<int>(result)) + ")";
}

bool is_sticky(CUresult result) noexcept {
  switch (static_cast<int>(result)) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case 721:  // CUDA_ERROR_TENSOR_MEMORY_LEAK, which older headers lack
    case CUDA_ERROR_EXTERNAL_DEVICE:
      return true;
    default:
      return false;
  }
}

}  // namespace weir::driver
