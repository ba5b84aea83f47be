#include "driver/sim/error_names.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <string>
#include <string_view>

namespace weir::sim {
namespace {

struct named_result {
  int number;
  const char* name;
};

// By number, so that headers which lack the newest ones serve too.
constexpr std::array results{
    named_result{0, "CUDA_SUCCESS"},
    named_result{1, "CUDA_ERROR_INVALID_VALUE"},
    named_result{2, "CUDA_ERROR_OUT_OF_MEMORY"},
    named_result{3, "CUDA_ERROR_NOT_INITIALIZED"},
    named_result{4, "CUDA_ERROR_DEINITIALIZED"},
    named_result{5, "CUDA_ERROR_PROFILER_DISABLED"},
    named_result{6, "CUDA_ERROR_PROFILER_NOT_INITIALIZED"},
    named_result{7, "CUDA_ERROR_PROFILER_ALREADY_STARTED"},
    named_result{8, "CUDA_ERROR_PROFILER_ALREADY_STOPPED"},
    named_result{34, "CUDA_ERROR_STUB_LIBRARY"},
    named_result{36, "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER"},
    named_result{46, "CUDA_ERROR_DEVICE_UNAVAILABLE"},
    named_result{100, "CUDA_ERROR_NO_DEVICE"},
    named_result{101, "CUDA_ERROR_INVALID_DEVICE"},
    named_result{102, "CUDA_ERROR_DEVICE_NOT_LICENSED"},
    named_result{200, "CUDA_ERROR_INVALID_IMAGE"},
    named_result{201, "CUDA_ERROR_INVALID_CONTEXT"},
    named_result{202, "CUDA_ERROR_CONTEXT_ALREADY_CURRENT"},
    named_result{205, "CUDA_ERROR_MAP_FAILED"},
    named_result{206, "CUDA_ERROR_UNMAP_FAILED"},
    named_result{207, "CUDA_ERROR_ARRAY_IS_MAPPED"},
    named_result{208, "CUDA_ERROR_ALREADY_MAPPED"},
    named_result{209, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
    named_result{210, "CUDA_ERROR_ALREADY_ACQUIRED"},
    named_result{211, "CUDA_ERROR_NOT_MAPPED"},
    named_result{212, "CUDA_ERROR_NOT_MAPPED_AS_ARRAY"},
    named_result{213, "CUDA_ERROR_NOT_MAPPED_AS_POINTER"},
    named_result{214, "CUDA_ERROR_ECC_UNCORRECTABLE"},
    named_result{215, "CUDA_ERROR_UNSUPPORTED_LIMIT"},
    named_result{216, "CUDA_ERROR_CONTEXT_ALREADY_IN_USE"},
    named_result{217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED"},
    named_result{218, "CUDA_ERROR_INVALID_PTX"},
    named_result{219, "CUDA_ERROR_INVALID_GRAPHICS_CONTEXT"},
    named_result{220, "CUDA_ERROR_NVLINK_UNCORRECTABLE"},
    named_result{221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND"},
    named_result{222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
    named_result{223, "CUDA_ERROR_JIT_COMPILATION_DISABLED"},
    named_result{224, "CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY"},
    named_result{225, "CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC"},
    named_result{226, "CUDA_ERROR_CONTAINED"},
    named_result{300, "CUDA_ERROR_INVALID_SOURCE"},
    named_result{301, "CUDA_ERROR_FILE_NOT_FOUND"},
    named_result{302, "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND"},
    named_result{303, "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED"},
    named_result{304, "CUDA_ERROR_OPERATING_SYSTEM"},
    named_result{400, "CUDA_ERROR_INVALID_HANDLE"},
    named_result{401, "CUDA_ERROR_ILLEGAL_STATE"},
    named_result{402, "CUDA_ERROR_LOSSY_QUERY"},
    named_result{500, "CUDA_ERROR_NOT_FOUND"},
    named_result{600, "CUDA_ERROR_NOT_READY"},
    named_result{700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
    named_result{701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"},
    named_result{702, "CUDA_ERROR_LAUNCH_TIMEOUT"},
    named_result{703, "CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING"},
    named_result{704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED"},
    named_result{705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED"},
    named_result{708, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE"},
    named_result{709, "CUDA_ERROR_CONTEXT_IS_DESTROYED"},
    named_result{710, "CUDA_ERROR_ASSERT"},
    named_result{711, "CUDA_ERROR_TOO_MANY_PEERS"},
    named_result{712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"},
    named_result{713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED"},
    named_result{714, "CUDA_ERROR_HARDWARE_STACK_ERROR"},
    named_result{715, "CUDA_ERROR_ILLEGAL_INSTRUCTION"},
    named_result{716, "CUDA_ERROR_MISALIGNED_ADDRESS"},
    named_result{717, "CUDA_ERROR_INVALID_ADDRESS_SPACE"},
    named_result{718, "CUDA_ERROR_INVALID_PC"},
    named_result{719, "CUDA_ERROR_LAUNCH_FAILED"},
    named_result{720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"},
    named_result{721, "CUDA_ERROR_TENSOR_MEMORY_LEAK"},
    named_result{800, "CUDA_ERROR_NOT_PERMITTED"},
    named_result{801, "CUDA_ERROR_NOT_SUPPORTED"},
    named_result{802, "CUDA_ERROR_SYSTEM_NOT_READY"},
    named_result{803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"},
    named_result{804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"},
    named_result{805, "CUDA_ERROR_MPS_CONNECTION_FAILED"},
    named_result{806, "CUDA_ERROR_MPS_RPC_FAILURE"},
    named_result{807, "CUDA_ERROR_MPS_SERVER_NOT_READY"},
    named_result{808, "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED"},
    named_result{809, "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED"},
    named_result{810, "CUDA_ERROR_MPS_CLIENT_TERMINATED"},
    named_result{811, "CUDA_ERROR_CDP_NOT_SUPPORTED"},
    named_result{812, "CUDA_ERROR_CDP_VERSION_MISMATCH"},
    named_result{900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
    named_result{901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
    named_result{902, "CUDA_ERROR_STREAM_CAPTURE_MERGE"},
    named_result{903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED"},
    named_result{904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED"},
    named_result{905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION"},
    named_result{906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"},
    named_result{907, "CUDA_ERROR_CAPTURED_EVENT"},
    named_result{908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD"},
    named_result{909, "CUDA_ERROR_TIMEOUT"},
    named_result{910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE"},
    named_result{911, "CUDA_ERROR_EXTERNAL_DEVICE"},
    named_result{912, "CUDA_ERROR_INVALID_CLUSTER_SIZE"},
    named_result{913, "CUDA_ERROR_FUNCTION_NOT_LOADED"},
    named_result{914, "CUDA_ERROR_INVALID_RESOURCE_TYPE"},
    named_result{915, "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION"},
    named_result{916, "CUDA_ERROR_KEY_ROTATION"},
    named_result{999, "CUDA_ERROR_UNKNOWN"},
};

const named_result* find(CUresult error) {
  const auto* it = std::find_if(results.begin(), results.end(),
                                [&](const named_result& r) { return r.number == static_cast<int>(error); });
  return it == results.end() ? nullptr : it;
}

}  // namespace

CUresult error_name(CUresult error, const char** name) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const named_result* found = find(error);
  *name = found != nullptr ? found->name : nullptr;
  return found != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult error_string(CUresult error, const char** text) {
  static const std::array<std::string, results.size()> texts = [] {
    std::array<std::string, results.size()> made;
    for (std::size_t i = 0; i < results.size(); ++i) {
      std::string_view name = results[i].name;
      for (const std::string_view prefix : {"CUDA_ERROR_", "CUDA_"}) {
        if (name.substr(0, prefix.size()) == prefix) name.remove_prefix(prefix.size());
      }
      for (const char c : name) {
        made[i] += c == '_' ? ' ' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      }
    }
    return made;
  }();
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const named_result* found = find(error);
  *text = found != nullptr ? texts[static_cast<std::size_t>(found - results.data())].c_str() : nullptr;
  return found != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace weir::sim
