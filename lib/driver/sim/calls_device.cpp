// Driver calls: start, version, devices.

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "driver/sim/machine_state.hpp"

namespace weir::sim {
namespace {

std::string bus_id_of(const machine_config& config, int index) {
  const std::string& given = config.devices[static_cast<std::size_t>(index)].pci_bus_id;
  if (!given.empty()) return given;
  char text[32];
  std::snprintf(text, sizeof text, "0000:%02x:00.0", index + 1);
  return text;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

CUuuid uuid_of(const machine_config& config, int index) {
  CUuuid id{};
  std::size_t digits = 0;
  for (const char c : config.devices[static_cast<std::size_t>(index)].uuid) {
    const int digit = hex_digit(c);
    if (digit < 0 || digits >= 2 * sizeof id.bytes) continue;
    char& byte = id.bytes[digits / 2];
    byte = static_cast<char>((byte << 4) | digit);
    ++digits;
  }
  if (digits == 0) {
    std::memcpy(id.bytes, "weir-simulated", 14);
    id.bytes[15] = static_cast<char>(index);
  }
  return id;
}

int bus_field(const std::string& id, CUdevice_attribute which) {
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned device = 0;
  if (std::sscanf(id.c_str(), "%x:%x:%x", &domain, &bus, &device) != 3) return 0;
  if (which == CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID) return static_cast<int>(domain);
  return static_cast<int>(which == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID ? bus : device);
}

void copy_text(char* to, int room, const std::string& text) {
  if (room <= 0) return;
  const auto n = std::min(text.size(), static_cast<std::size_t>(room) - 1);
  std::memcpy(to, text.data(), n);
  to[n] = 0;
}

}  // namespace

CUresult machine_state::cuInit(unsigned flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (devices.empty()) return CUDA_ERROR_NO_DEVICE;
  initialized.store(true, std::memory_order_release);
  return CUDA_SUCCESS;
}

CUresult machine_state::cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = config.driver_version;
  return CUDA_SUCCESS;
}

CUresult machine_state::cuDeviceGet(CUdevice* device, int ordinal) {
  device_state* d = nullptr;
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = device_at(ordinal, d); result != CUDA_SUCCESS) return result;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult machine_state::cuDeviceGetCount(int* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<int>(devices.size());
  return CUDA_SUCCESS;
}

CUresult machine_state::cuDeviceGetName(char* name, int room, CUdevice device) {
  device_state* d = nullptr;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = device_at(device, d); result != CUDA_SUCCESS) return result;
  copy_text(name, room, config.devices[static_cast<std::size_t>(device)].name);
  return CUDA_SUCCESS;
}

CUresult machine_state::cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  device_state* d = nullptr;
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = device_at(device, d); result != CUDA_SUCCESS) return result;
  *uuid = uuid_of(config, device);
  return CUDA_SUCCESS;
}

CUresult machine_state::cuDeviceTotalMem(std::size_t* bytes, CUdevice device) {
  device_state* d = nullptr;
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = device_at(device, d); result != CUDA_SUCCESS) return result;
  *bytes = d->memory->capacity();
  return CUDA_SUCCESS;
}

CUresult machine_state::cuDeviceGetPCIBusId(char* id, int room, CUdevice device) {
  device_state* d = nullptr;
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = device_at(device, d); result != CUDA_SUCCESS) return result;
  copy_text(id, room, bus_id_of(config, device));
  return CUDA_SUCCESS;
}

CUresult machine_state::cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  device_state* d = nullptr;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = device_at(device, d); result != CUDA_SUCCESS) return result;
  const device_config& c = config.devices[static_cast<std::size_t>(device)];
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
      *value = c.vmm ? 1 : 0;
      break;
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED:
      *value = c.rdma ? 1 : 0;
      break;
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED:
      *value = c.rdma && c.vmm ? 1 : 0;
      break;
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID:
      *value = c.numa_node;
      break;
    case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
    case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
      *value = bus_field(bus_id_of(config, device), attribute);
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = 9;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = 0;
      break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = 132;
      break;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
      *value = 3;
      break;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
      *value = 1;
      break;
    default:
      if (attribute <= 0 || attribute >= CU_DEVICE_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
      *value = 0;
  }
  return CUDA_SUCCESS;
}

CUresult machine_state::cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  device_state* d = nullptr;
  if (can == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = device_at(device, d); result != CUDA_SUCCESS) return result;
  if (const CUresult result = device_at(peer, d); result != CUDA_SUCCESS) return result;
  *can = device != peer && peers(device, peer) ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult machine_state::cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice from,
                                                CUdevice to) {
  device_state* d = nullptr;
  if (value == nullptr || from == to) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = device_at(from, d); result != CUDA_SUCCESS) return result;
  if (const CUresult result = device_at(to, d); result != CUDA_SUCCESS) return result;
  switch (attribute) {
    case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
      *value = 0;
      break;
    case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
      *value = peers(from, to) ? 1 : 0;
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

}  // namespace weir::sim
