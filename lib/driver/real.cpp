#include "driver/real.hpp"

#include <dlfcn.h>

#include <cstring>
#include <mutex>

namespace weir::driver {
namespace {

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// cuGetProcAddress hands out untyped addresses; a table entry takes one over bit by bit.
template <class F>
void set_function(F& field, void* address) {
  static_assert(sizeof field == sizeof address);
  std::memcpy(&field, &address, sizeof field);
}

}  // namespace

real_driver open_driver_library(const char* library, table& into) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    return {nullptr, std::string("no CUDA driver: ") + (reason != nullptr ? reason : library), 0};
  }
  PFN_cuGetProcAddress_v12000 get = nullptr;
  PFN_cuDriverGetVersion_v2020 get_version = nullptr;
  set_function(get, dlsym(handle, "cuGetProcAddress_v2"));
  set_function(get_version, dlsym(handle, "cuDriverGetVersion"));

  int version = 0;
  if (get_version == nullptr || get_version(&version) != CUDA_SUCCESS) {
    return {nullptr, std::string("no CUDA driver: ") + library + " does not answer cuDriverGetVersion", 0};
  }
  if (version < minimum_driver || get == nullptr) {
    return {nullptr,
            "the CUDA driver is too old: it is of CUDA " + version_text(version) + ", Weir needs " +
                version_text(minimum_driver) + " or newer",
            version};
  }

  std::string missing;
  // The legacy form of every call: what null means as a stream must not depend on who compiled the caller.
  auto load = [&](auto& field, const call_info& c) {
    void* address = nullptr;
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
    const CUresult result =
        get(std::string(c.name).c_str(), &address, c.version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &found);
    if (result == CUDA_SUCCESS && found == CU_GET_PROC_ADDRESS_SUCCESS && address != nullptr) {
      set_function(field, address);
    } else if (c.needed == presence::required && missing.empty()) {
      missing = c.name;
    }
  };
#define WEIR_DRIVER_LOAD(name, version, presence, timing) load(into.name, info(call::k_##name));
  WEIR_DRIVER_CALLS(WEIR_DRIVER_LOAD)
#undef WEIR_DRIVER_LOAD
  if (!missing.empty()) {
    return {nullptr, "the CUDA driver (CUDA " + version_text(version) + ") lacks " + missing, version};
  }
  return {&into, {}, version};
}

real_driver open_real_driver() {
  static std::mutex mutex;
  static table functions;
  static real_driver opened;
  const std::lock_guard lock(mutex);
  if (opened.functions == nullptr) opened = open_driver_library("libcuda.so.1", functions);
  return opened;
}

}  // namespace weir::driver
