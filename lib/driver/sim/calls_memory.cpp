// Driver calls: plain device allocations, and what the driver knows of an address.

#include <algorithm>

#include "driver/sim/machine_state.hpp"

namespace weir::sim {
namespace {

std::uint64_t round_up(std::uint64_t n, std::uint64_t to) { return (n + to - 1) / to * to; }

template <class T>
CUresult give(void* out, T value) {
  *static_cast<T*>(out) = value;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult machine_state::cuMemGetInfo(std::size_t* free, std::size_t* total) {
  context_state* c = nullptr;
  if (free == nullptr || total == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = current(c); result != CUDA_SUCCESS) return result;
  *free = c->device->memory->free();
  *total = c->device->memory->capacity();
  return CUDA_SUCCESS;
}

CUresult machine_state::cuMemGetAddressRange(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr at) {
  const auto range = addresses.find(at);
  if (range == nullptr) return CUDA_ERROR_NOT_FOUND;
  const std::lock_guard lock(range->mutex);
  const auto covering = range->cover(at, 1);
  if (covering.empty()) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = covering.front()->base;
  if (bytes != nullptr) *bytes = covering.front()->bytes;
  return CUDA_SUCCESS;
}

// One reservation and one mapping each; small ones take a page, as if packed.
CUresult machine_state::allocate_plain(context_state& c, std::uint64_t bytes, CUdeviceptr& out) {
  constexpr std::uint64_t page = 4096;
  if (bytes > c.device->memory->capacity()) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::uint64_t whole = round_up(bytes, bytes > config.granularity / 2 ? config.granularity : page);
  const auto memory = physical::make(c.device->memory, whole);
  if (memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto range = addresses.reserve(whole, page, true);
  if (range == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  auto made = std::make_shared<mapping>();
  made->base = range->base();
  made->bytes = whole;
  made->memory = memory;
  made->plain = true;
  {
    const std::lock_guard lock(range->mutex);
    range->mappings.emplace(made->base, made);
  }
  const std::lock_guard lock(plain_mutex);
  plain.emplace(range->base(), range);
  out = range->base();
  return CUDA_SUCCESS;
}

std::shared_ptr<reservation> machine_state::take_plain(CUdeviceptr at) {
  const std::lock_guard lock(plain_mutex);
  const auto it = plain.find(at);
  if (it == plain.end()) return nullptr;
  std::shared_ptr<reservation> range = std::move(it->second);
  plain.erase(it);
  return range;
}

void machine_state::free_plain(const std::shared_ptr<reservation>& range) {
  {
    const std::lock_guard lock(range->mutex);
    const std::shared_ptr<mapping> m = range->mappings.begin()->second;
    unmap(*range, m, "free");
  }
  addresses.release(range->base(), range->bytes());
}

CUresult machine_state::cuMemAlloc(CUdeviceptr* out, std::size_t bytes) {
  context_state* c = nullptr;
  if (out == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = current(c); result != CUDA_SUCCESS) return result;
  if (const CUresult result = refuse_unsafe(); result != CUDA_SUCCESS) return result;
  return allocate_plain(*c, bytes, *out);
}

// Waits for what runs on the current device, as measured.
CUresult machine_state::cuMemFree(CUdeviceptr at) {
  context_state* c = nullptr;
  if (at == 0) return CUDA_SUCCESS;
  if (const CUresult result = current(c); result != CUDA_SUCCESS) return result;
  if (const CUresult result = refuse_unsafe(); result != CUDA_SUCCESS) return result;
  const auto range = take_plain(at);
  if (range == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = wait_for_device(*c->device);
  free_plain(range);
  return result;
}

// Inside a capture these would become nodes with addresses of their own, which this machine does not have.
CUresult machine_state::cuMemAllocAsync(CUdeviceptr* out, std::size_t bytes, CUstream on) {
  stream_ref s;
  if (out == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = resolve(on, s); result != CUDA_SUCCESS) return result;
  if (capture_of(*s.core) != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return allocate_plain(s.device->context, bytes, *out);
}

CUresult machine_state::cuMemFreeAsync(CUdeviceptr at, CUstream on) {
  stream_ref s;
  if (const CUresult result = resolve(on, s); result != CUDA_SUCCESS) return result;
  if (at == 0) return CUDA_SUCCESS;
  if (capture_of(*s.core) != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  const auto range = take_plain(at);
  if (range == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return submit(s, kernel{[this, range] { free_plain(range); }, s.device->index, true});
}

CUresult machine_state::cuPointerGetAttribute(void* out, CUpointer_attribute attribute, CUdeviceptr at) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;
  std::uint64_t mapping_base = 0;
  std::uint64_t mapping_bytes = 0;
  unsigned long long handle_types = 0;
  int owner = -1;
  bool mapped = true;
  bool internal = false;
  bool rdma = false;
  if (const auto range = addresses.find(at)) {
    base = range->base();
    bytes = range->bytes();
    internal = range->internal;
    const std::lock_guard lock(range->mutex);
    const auto covering = range->cover(at, 1);
    mapped = !covering.empty();
    for (const auto& m : covering) {  // one at most
      mapping_base = m->base;
      mapping_bytes = m->bytes;
      handle_types = m->memory->handle_types;
      owner = m->memory->home->owner();
      rdma = internal || m->memory->rdma;
    }
  } else if (const auto block = pinned.find(at, 1)) {
    mapping_base = base = block->base;
    mapping_bytes = bytes = block->bytes;
  } else {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR) return give(out, static_cast<CUdeviceptr>(base));
  if (attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE) return give(out, static_cast<std::size_t>(bytes));
  if (attribute == CU_POINTER_ATTRIBUTE_MAPPED) return give(out, static_cast<char>(mapped ? 1 : 0));
  if (!mapped) return CUDA_ERROR_INVALID_VALUE;
  const bool on_device = owner >= 0;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: {
      // Mapped memory belongs to no context.
      context_state* c = on_device && internal ? &devices[static_cast<std::size_t>(owner)]->context : nullptr;
      return give(out, static_cast<CUcontext>(static_cast<void*>(c)));
    }
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return give(out, on_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return give(out, at);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (on_device) return CUDA_ERROR_INVALID_VALUE;
      return give(out, reinterpret_cast<void*>(static_cast<std::uintptr_t>(at)));
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return give(out, on_device ? owner : std::max(current_device(), 0));
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return give(out, 0);
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return give(out, static_cast<CUdeviceptr>(mapping_base));
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return give(out, static_cast<std::size_t>(mapping_bytes));
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return give(out, handle_types);
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return give(out, rdma ? 1 : 0);
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

}  // namespace weir::sim
