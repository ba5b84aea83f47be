// RMM's pool over cudaMalloc: 16 GiB at the start, so that it never grows while it is measured.

#include <cuda_runtime_api.h>
#include <rmm/mr/cuda_memory_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>

#include <cstddef>
#include <exception>
#include <string>

#include "peer.h"

namespace {

constexpr std::size_t pool_bytes = std::size_t{16} << 30;
constexpr std::size_t alignment = 256;

rmm::mr::pool_memory_resource* pool = nullptr;

const char* init() {
  static std::string fault;
  if (cudaSetDevice(0) != cudaSuccess) return "no device";
  try {
    // Never destroyed: at exit the driver may be gone already.
    pool = new rmm::mr::pool_memory_resource(rmm::mr::cuda_memory_resource(), pool_bytes);
    return nullptr;
  } catch (const std::exception& error) {
    fault = error.what();
    return fault.c_str();
  }
}

void* allocate(std::size_t bytes, void* stream) {
  try {
    return pool->allocate(cuda::stream_ref{static_cast<cudaStream_t>(stream)}, bytes, alignment);
  } catch (...) {
    return nullptr;
  }
}

void deallocate(void* block, std::size_t bytes, void* stream) {
  pool->deallocate(cuda::stream_ref{static_cast<cudaStream_t>(stream)}, block, bytes, alignment);
}

void thread_init() { (void)cudaSetDevice(0); }

constexpr weir_bench_peer table{WEIR_BENCH_PEER_VERSION, 1, "rmm", init, allocate, deallocate, thread_init};

}  // namespace

extern "C" const weir_bench_peer* weir_bench_get_peer() { return &table; }
