// cub::CachingDeviceAllocator with its defaults.

#include <cub/util_allocator.cuh>

#include "peer.h"

namespace {

cub::CachingDeviceAllocator* pool = nullptr;

const char* init() {
  if (const cudaError_t error = cudaSetDevice(0); error != cudaSuccess) return cudaGetErrorString(error);
  // Never destroyed: at exit the driver may be gone already.
  pool = new cub::CachingDeviceAllocator();
  return nullptr;
}

void* allocate(std::size_t bytes, void* stream) {
  void* block = nullptr;
  return pool->DeviceAllocate(0, &block, bytes, static_cast<cudaStream_t>(stream)) == cudaSuccess ? block : nullptr;
}

void deallocate(void* block, std::size_t, void*) { (void)pool->DeviceFree(0, block); }

void thread_init() { (void)cudaSetDevice(0); }

constexpr weir_bench_peer table{WEIR_BENCH_PEER_VERSION, 1, "cub", init, allocate, deallocate, thread_init};

}  // namespace

extern "C" const weir_bench_peer* weir_bench_get_peer() { return &table; }
