// What a device is, for people.

#include <array>
#include <string>

#include "weir/error.hpp"

#include "driver/error.hpp"
#include "vm/device.hpp"

namespace weir::vm {

namespace {

std::string uuid_text(const CUuuid& id) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    const auto byte = static_cast<unsigned char>(id.bytes[i]);
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

}  // namespace

device_info device::describe() const {
  const auto check = [&](const char* call, CUresult r) {
    if (r == CUDA_SUCCESS) return;
    throw error(errc::driver_error,
                "device " + std::to_string(ordinal_) + ": " + driver::describe(api_.functions(), call, r));
  };
  device_info info;
  info.index = ordinal_;
  std::array<char, 256> name{};
  check("cuDeviceGetName", api_.cuDeviceGetName(name.data(), static_cast<int>(name.size()) - 1, handle_));
  info.name = name.data();
  CUuuid id{};
  check("cuDeviceGetUuid", api_.cuDeviceGetUuid(&id, handle_));
  info.uuid = uuid_text(id);
  std::array<char, 32> pci{};
  if (api_.cuDeviceGetPCIBusId(pci.data(), static_cast<int>(pci.size()) - 1, handle_) == CUDA_SUCCESS) {
    info.pci_address = pci.data();
    for (char& c : info.pci_address) {
      if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
    }
  }
  int node = -1;
  if (api_.cuDeviceGetAttribute(&node, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, handle_) != CUDA_SUCCESS) node = -1;
  info.numa_node = node;
  info.compute_major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  info.compute_minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  info.memory = capacity_;
  info.granularity = granularity_;
  info.vmm = true;
  // Only the context knows what is free; none is made for the question.
  if (context() != nullptr && !lost.load(std::memory_order_relaxed)) {
    const driver_scope scope(*this);
    std::size_t free_bytes = 0;
    std::size_t total = 0;
    if (scope.result() == CUDA_SUCCESS && api_.cuMemGetInfo(&free_bytes, &total) == CUDA_SUCCESS) {
      info.memory_free = free_bytes;
    }
  }
  return info;
}

}  // namespace weir::vm
