// cudaMalloc and cudaMallocAsync, through a libcudart opened at run time.

#include <dlfcn.h>

#include <cstdint>
#include <string>
#include <vector>

#include "environment.hpp"

namespace weir::bench {
namespace {

// The runtime's own signatures, written out: this program is built where no toolkit is. cudaError_t is an enum of int.
int (*cuda_set_device)(int);
int (*cuda_malloc)(void**, std::size_t);
int (*cuda_free)(void*);
int (*cuda_malloc_async)(void**, std::size_t, void*);
int (*cuda_free_async)(void*, void*);
int (*cuda_device_get_default_mem_pool)(void**, int);
int (*cuda_mem_pool_set_attribute)(void*, int, void*);
constexpr int mem_pool_attr_release_threshold = 4;

void use_device() { cuda_set_device(0); }

void* plain_allocate(std::size_t bytes, void*) {
  void* block = nullptr;
  return cuda_malloc(&block, bytes) == 0 ? block : nullptr;
}
void plain_deallocate(void* block, std::size_t, void*) { cuda_free(block); }

void* async_allocate(std::size_t bytes, void* stream) {
  void* block = nullptr;
  return cuda_malloc_async(&block, bytes, stream) == 0 ? block : nullptr;
}
void async_deallocate(void* block, std::size_t, void* stream) { cuda_free_async(block, stream); }

void* open_cudart(environment& env) {
  if (!env.given().cudart.empty()) {
    void* handle = ::dlopen(env.given().cudart.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) env.note(::dlerror());
    return handle;
  }
  for (const char* name : {"libcudart.so.13", "libcudart.so.12", "libcudart.so"}) {
    if (void* handle = env.open_library(name)) return handle;
    if (void* handle = ::dlopen((std::string("/usr/local/cuda/lib64/") + name).c_str(), RTLD_NOW | RTLD_LOCAL)) {
      return handle;
    }
  }
  return nullptr;
}

template <class Function>
bool find(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(handle, name));
  return function != nullptr;
}

}  // namespace

void add_cuda_allocators(environment& env) {
  void* handle = open_cudart(env);
  if (handle == nullptr) return env.note("no libcudart: cudaMalloc and cudaMallocAsync are left out (--cudart=PATH)");
  if (!find(handle, "cudaSetDevice", cuda_set_device) || !find(handle, "cudaMalloc", cuda_malloc) ||
      !find(handle, "cudaFree", cuda_free) || cuda_set_device(0) != 0) {
    return env.note("libcudart does not work on device 0");
  }
  allocator plain;
  plain.name = "cudaMalloc";
  plain.allocate = plain_allocate;
  plain.deallocate = plain_deallocate;
  plain.thread_init = use_device;
  env.allocators.push_back(std::move(plain));

  void* pool = nullptr;
  if (!find(handle, "cudaMallocAsync", cuda_malloc_async) || !find(handle, "cudaFreeAsync", cuda_free_async) ||
      !find(handle, "cudaDeviceGetDefaultMemPool", cuda_device_get_default_mem_pool) ||
      !find(handle, "cudaMemPoolSetAttribute", cuda_mem_pool_set_attribute) ||
      cuda_device_get_default_mem_pool(&pool, 0) != 0) {
    return env.note("this device has no memory pools: cudaMallocAsync is left out");
  }
  // Keep what was freed, as everybody who uses it for speed does.
  std::uint64_t keep = UINT64_MAX;
  if (cuda_mem_pool_set_attribute(pool, mem_pool_attr_release_threshold, &keep) != 0) {
    env.note("cudaMallocAsync: the release threshold could not be set");
  }
  allocator async;
  async.name = "cudaMallocAsync";
  async.allocate = async_allocate;
  async.deallocate = async_deallocate;
  async.thread_init = use_device;
  async.context_of = [&env](std::size_t index) { return static_cast<void*>(env.stream(index)); };
  env.allocators.push_back(std::move(async));
}

}  // namespace weir::bench
