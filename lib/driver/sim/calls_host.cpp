// Driver calls: pinned host memory.

#include <sys/mman.h>

#include "driver/sim/costs.hpp"
#include "driver/sim/machine_state.hpp"

namespace weir::sim {
namespace {

constexpr std::uint64_t page = 4096;

std::uint64_t number_of(const void* p) { return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(p)); }

}  // namespace

CUresult machine_state::cuMemHostAlloc(void** out, std::size_t bytes, unsigned flags) {
  context_state* c = nullptr;
  if (out == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = current(c); result != CUDA_SUCCESS) return result;
  if (const CUresult result = refuse_unsafe(); result != CUDA_SUCCESS) return result;
  const std::uint64_t whole = (bytes + page - 1) / page * page;
  void* p = whole < bytes
                ? MAP_FAILED
                : mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  pinned.add({number_of(p), whole, false, flags, c->id.load()});
  if (costs.active()) hint(host_allocation_cost(whole));
  *out = p;
  return CUDA_SUCCESS;
}

// Freeing and unregistering wait for what runs on the current device, as measured.
CUresult machine_state::cuMemFreeHost(void* p) {
  context_state* c = nullptr;
  if (const CUresult result = current(c); result != CUDA_SUCCESS) return result;
  if (const CUresult result = refuse_unsafe(); result != CUDA_SUCCESS) return result;
  const auto block = pinned.take(number_of(p), false);
  if (!block) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = wait_for_device(*c->device);
  munmap(p, block->bytes);
  return result;
}

CUresult machine_state::cuMemHostRegister(void* p, std::size_t bytes, unsigned flags) {
  context_state* c = nullptr;
  if (p == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = current(c); result != CUDA_SUCCESS) return result;
  if (const CUresult result = refuse_unsafe(); result != CUDA_SUCCESS) return result;
  if (costs.active()) hint(host_registration_cost(bytes));
  return pinned.add({number_of(p), bytes, true, flags, c->id.load()}) ? CUDA_SUCCESS
                                                                      : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
}

CUresult machine_state::cuMemHostUnregister(void* p) {
  context_state* c = nullptr;
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = current(c); result != CUDA_SUCCESS) return result;
  if (const CUresult result = refuse_unsafe(); result != CUDA_SUCCESS) return result;
  const auto block = pinned.take(number_of(p), true);
  if (!block) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  return wait_for_device(*c->device);
}

// With unified addresses a pinned block has one address for all.
CUresult machine_state::cuMemHostGetDevicePointer(CUdeviceptr* out, void* p, unsigned flags) {
  if (out == nullptr || flags != 0 || !pinned.find(number_of(p), 1)) return CUDA_ERROR_INVALID_VALUE;
  *out = number_of(p);
  return CUDA_SUCCESS;
}

}  // namespace weir::sim
