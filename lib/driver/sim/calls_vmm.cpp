// Driver calls: reservations, physical handles, mappings, access.

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>

#include "driver/sim/costs.hpp"
#include "driver/sim/machine_state.hpp"

namespace weir::sim {
namespace {

bool power_of_two(std::uint64_t n) { return (n & (n - 1)) == 0; }

CUmemAllocationProp properties(const physical& p) {
  CUmemAllocationProp prop{};
  const int owner = p.home->owner();
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.requestedHandleTypes = static_cast<CUmemAllocationHandleType>(p.handle_types);
  prop.location.type = owner >= 0 ? CU_MEM_LOCATION_TYPE_DEVICE : CU_MEM_LOCATION_TYPE_HOST_NUMA;
  prop.location.id = owner >= 0 ? owner : -1 - owner;
  prop.allocFlags.gpuDirectRDMACapable = p.rdma ? 1 : 0;
  return prop;
}

std::uint64_t step_cost(handle_step step, const physical& p) {
  return p.home->owner() >= 0 ? handle_cost(step, p.bytes) : host_handle_cost(step, p.bytes);
}

}  // namespace

handle_table* machine_state::table_of(std::uint64_t handle) {
  const unsigned owner = handle_table::owner_of(handle);
  return owner < handles.size() ? handles[owner].get() : nullptr;
}

std::shared_ptr<physical> machine_state::find_physical(std::uint64_t handle) {
  handle_table* t = table_of(handle);
  return t == nullptr ? nullptr : t->find(handle);
}

CUresult machine_state::cuMemGetAllocationGranularity(std::size_t* bytes, const CUmemAllocationProp* prop,
                                                      CUmemAllocationGranularity_flags which) {
  if (bytes == nullptr || prop == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (which != CU_MEM_ALLOC_GRANULARITY_MINIMUM && which != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
    return CUDA_ERROR_INVALID_VALUE;
  if (prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
    device_state* d = nullptr;
    if (const CUresult result = device_at(prop->location.id, d); result != CUDA_SUCCESS) return result;
    if (!config.devices[static_cast<std::size_t>(d->index)].vmm) return CUDA_ERROR_NOT_SUPPORTED;
  }
  *bytes = config.granularity;
  return CUDA_SUCCESS;
}

CUresult machine_state::cuMemAddressReserve(CUdeviceptr* out, std::size_t bytes, std::size_t alignment, CUdeviceptr,
                                            unsigned long long flags) {
  if (out == nullptr || bytes == 0 || bytes % config.granularity != 0 || !power_of_two(alignment) || flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  const auto range = addresses.reserve(bytes, alignment, false);
  if (range == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = range->base();
  return CUDA_SUCCESS;
}

CUresult machine_state::cuMemAddressFree(CUdeviceptr at, std::size_t bytes) {
  const auto range = addresses.find(at);
  if (range == nullptr || range->internal) return CUDA_ERROR_INVALID_VALUE;
  return addresses.release(at, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult machine_state::cuMemCreate(CUmemGenericAllocationHandle* out, std::size_t bytes,
                                    const CUmemAllocationProp* prop, unsigned long long flags) {
  if (out == nullptr || prop == nullptr || flags != 0 || bytes == 0 || bytes % config.granularity != 0 ||
      prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
    return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<backing> home;
  std::size_t owner = 0;
  if (prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
    device_state* d = nullptr;
    if (const CUresult result = device_at(prop->location.id, d); result != CUDA_SUCCESS) return result;
    if (const int error = d->error.load()) return static_cast<CUresult>(error);
    const device_config& c = config.devices[static_cast<std::size_t>(d->index)];
    if (!c.vmm || (prop->allocFlags.gpuDirectRDMACapable != 0 && !c.rdma)) return CUDA_ERROR_NOT_SUPPORTED;
    home = d->memory;
    owner = static_cast<std::size_t>(d->index);
  } else if (prop->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
             prop->location.type == CU_MEM_LOCATION_TYPE_HOST) {
    const int node = prop->location.type == CU_MEM_LOCATION_TYPE_HOST ? 0 : prop->location.id;
    if (node < 0 || static_cast<std::size_t>(node) >= host_nodes.size()) return CUDA_ERROR_INVALID_VALUE;
    home = host_nodes[static_cast<std::size_t>(node)];
    owner = devices.size() + static_cast<std::size_t>(node);
  } else {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const auto memory = physical::make(home, bytes);
  if (memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  memory->handle_types = static_cast<unsigned>(prop->requestedHandleTypes);
  memory->rdma = prop->allocFlags.gpuDirectRDMACapable != 0;
  if (costs.active()) hint(step_cost(handle_step::create, *memory));
  *out = handles[owner]->add(memory);
  return CUDA_SUCCESS;
}

CUresult machine_state::cuMemRelease(CUmemGenericAllocationHandle handle) {
  handle_table* t = table_of(handle);
  if (t == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (costs.active()) {
    if (const auto memory = t->find(handle)) hint(step_cost(handle_step::release, *memory));
  }
  return t->release(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult machine_state::cuMemMap(CUdeviceptr at, std::size_t bytes, std::size_t offset,
                                 CUmemGenericAllocationHandle handle, unsigned long long flags) {
  const auto memory = find_physical(handle);
  const auto range = addresses.find(at);
  if (memory == nullptr || range == nullptr || range->internal || flags != 0 || offset != 0 || bytes == 0 ||
      bytes > memory->bytes || bytes % config.granularity != 0 || at % config.granularity != 0 ||
      !range->contains(at, bytes))
    return CUDA_ERROR_INVALID_VALUE;
  auto made = std::make_shared<mapping>();
  made->base = at;
  made->bytes = bytes;
  made->memory = memory;
  if (costs.active()) hint(step_cost(handle_step::map, *memory));
  const std::lock_guard lock(range->mutex);
  if (range->released || range->any_in(at, bytes)) return CUDA_ERROR_INVALID_VALUE;
  range->mappings.emplace(at, std::move(made));
  return CUDA_SUCCESS;
}

// With the reservation's mutex held. A kernel that still looks at the memory keeps seeing it, and that is a fault.
void machine_state::unmap(reservation& range, const std::shared_ptr<mapping>& m, std::string_view call) {
  range.mappings.erase(m->base);
  m->unmapped = true;
  if (m->pins == 0) {
    range.hide(*m);
    return;
  }
  char text[128];
  std::snprintf(text, sizeof text, "%.*s of 0x%llx (%llu bytes) while running work uses it",
                static_cast<int>(call.size()), call.data(), static_cast<unsigned long long>(m->base),
                static_cast<unsigned long long>(m->bytes));
  faults.report(fault_kind::busy_unmap, text, m->memory->home->owner());
}

CUresult machine_state::cuMemUnmap(CUdeviceptr at, std::size_t bytes) {
  const auto range = addresses.find(at);
  if (range == nullptr || range->internal || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  std::vector<std::shared_ptr<mapping>> gone;  // their memory is let go after the lock
  const std::lock_guard lock(range->mutex);
  gone = range->cover(at, bytes);
  // Whole mappings only, without a gap.
  if (gone.empty() || gone.front()->base != at || gone.back()->end() != at + bytes) return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t cost = 0;
  for (const auto& m : gone) {
    cost += step_cost(handle_step::unmap, *m->memory);
    unmap(*range, m, "cuMemUnmap");
  }
  if (costs.active()) hint(cost);
  return CUDA_SUCCESS;
}

CUresult machine_state::cuMemSetAccess(CUdeviceptr at, std::size_t bytes, const CUmemAccessDesc* wanted,
                                       std::size_t count) {
  const auto range = addresses.find(at);
  if (range == nullptr || range->internal || bytes == 0 || wanted == nullptr || count == 0)
    return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(range->mutex);
  const auto covering = range->cover(at, bytes);
  if (covering.empty() || covering.front()->base != at || covering.back()->end() != at + bytes)
    return CUDA_ERROR_INVALID_VALUE;
  // All is checked before anything changes.
  for (std::size_t i = 0; i < count; ++i) {
    const bool to_host = wanted[i].location.type == CU_MEM_LOCATION_TYPE_HOST ||
                         wanted[i].location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
    if (!to_host && wanted[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    device_state* d = nullptr;
    if (!to_host) {
      if (const CUresult result = device_at(wanted[i].location.id, d); result != CUDA_SUCCESS) return result;
    }
    for (const auto& m : covering) {
      const int owner = m->memory->home->owner();
      if (to_host && owner >= 0) return CUDA_ERROR_NOT_SUPPORTED;
      if (!to_host && owner >= 0 && owner != d->index && !peers(d->index, owner))
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    }
  }
  std::uint64_t cost = 0;
  for (const auto& m : covering) {
    cost += step_cost(handle_step::set_access, *m->memory);
    for (std::size_t i = 0; i < count; ++i) {
      const bool readable = (wanted[i].flags & CU_MEM_ACCESS_FLAGS_PROT_READ) != 0;
      const bool writable = wanted[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
      if (wanted[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        if (readable) range->open_to_host(*m);
        continue;
      }
      const std::uint64_t bit = std::uint64_t{1} << wanted[i].location.id;
      m->readable = readable ? m->readable | bit : m->readable & ~bit;
      m->writable = writable ? m->writable | bit : m->writable & ~bit;
    }
  }
  if (costs.active()) hint(cost);
  return CUDA_SUCCESS;
}

CUresult machine_state::cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr at) {
  const auto range = addresses.find(at);
  if (flags == nullptr || location == nullptr || range == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(range->mutex);
  const auto covering = range->cover(at, 1);
  if (covering.empty()) return CUDA_ERROR_INVALID_VALUE;
  const mapping& m = *covering.front();
  if (location->type != CU_MEM_LOCATION_TYPE_DEVICE) {
    *flags = m.host_access ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
  }
  device_state* d = nullptr;
  if (const CUresult result = device_at(location->id, d); result != CUDA_SUCCESS) return result;
  const std::uint64_t bit = std::uint64_t{1} << d->index;
  *flags = (m.writable & bit) != 0   ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
           : (m.readable & bit) != 0 ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                     : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

CUresult machine_state::cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* out, void* address) {
  const auto at = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(address));
  const auto range = addresses.find(at);
  if (out == nullptr || range == nullptr || range->internal) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(range->mutex);
  const auto covering = range->cover(at, 1);
  if (covering.empty()) return CUDA_ERROR_INVALID_VALUE;
  const int owner = covering.front()->memory->home->owner();
  const std::size_t index =
      owner >= 0 ? static_cast<std::size_t>(owner) : devices.size() + static_cast<std::size_t>(-1 - owner);
  *out = handles[index]->retain(covering.front()->memory);
  return CUDA_SUCCESS;
}

CUresult machine_state::cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* prop,
                                                               CUmemGenericAllocationHandle handle) {
  const auto memory = find_physical(handle);
  if (prop == nullptr || memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *prop = properties(*memory);
  return CUDA_SUCCESS;
}

// The descriptor is of the whole file, opened anew: what it is good for is being passed and closed.
CUresult machine_state::cuMemExportToShareableHandle(void* out, CUmemGenericAllocationHandle handle,
                                                     CUmemAllocationHandleType type, unsigned long long flags) {
  const auto memory = find_physical(handle);
  if (out == nullptr || memory == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  if ((memory->handle_types & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == 0) return CUDA_ERROR_INVALID_VALUE;
  const int file = fcntl(memory->home->file(), F_DUPFD_CLOEXEC, 0);
  if (file < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  *static_cast<int*>(out) = file;
  return CUDA_SUCCESS;
}

}  // namespace weir::sim
