// PyTorch's native caching allocator, by the calls that its tensors make.

#include <c10/cuda/CUDACachingAllocator.h>
#include <cuda_runtime_api.h>

#include <exception>
#include <string>

#include "peer.h"

namespace {

namespace pool = c10::cuda::CUDACachingAllocator;

const char* init() {
  static std::string fault;
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || cudaSetDevice(0) != cudaSuccess) return "no device";
  try {
    pool::init(static_cast<c10::DeviceIndex>(devices));
    return nullptr;
  } catch (const std::exception& error) {
    fault = error.what();
    return fault.c_str();
  }
}

void* allocate(std::size_t bytes, void* stream) {
  try {
    return pool::raw_alloc_with_stream(bytes, static_cast<cudaStream_t>(stream));
  } catch (...) {
    return nullptr;
  }
}

void deallocate(void* block, std::size_t, void*) { pool::raw_delete(block); }

void thread_init() { (void)cudaSetDevice(0); }

constexpr weir_bench_peer table{WEIR_BENCH_PEER_VERSION, 1, "pytorch", init, allocate, deallocate, thread_init};

}  // namespace

extern "C" const weir_bench_peer* weir_bench_get_peer() { return &table; }
