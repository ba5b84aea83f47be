#pragma once
// A simulated machine with its table, and short ways to make what most tests need.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "weir/simulation.hpp"

#include "driver/table.hpp"

namespace weir::test {

inline constexpr std::size_t mib = std::size_t{1} << 20;

/// Headers differ in how the number is nested, so no braces.
inline CUmemLocation place(CUmemLocationType type, int id) {
  CUmemLocation where{};
  where.type = type;
  where.id = id;
  return where;
}

/// A machine whose table is initialised, with device 0's context current in the calling thread.
struct driver_machine {
  explicit driver_machine(sim::machine_config config = {}) : machine(std::move(config)), cu(machine.table()) {
    EXPECT_EQ(cu.cuInit(0), CUDA_SUCCESS);
    machine.set_device(0);
  }
  ~driver_machine() { machine.set_device(-1); }
  driver_machine(const driver_machine&) = delete;
  driver_machine& operator=(const driver_machine&) = delete;

  static CUmemAllocationProp on_device(int device) {
    CUmemAllocationProp prop{};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location = place(CU_MEM_LOCATION_TYPE_DEVICE, device);
    return prop;
  }

  CUdeviceptr reserve(std::size_t bytes, std::size_t alignment = 0) const {
    CUdeviceptr at = 0;
    EXPECT_EQ(cu.cuMemAddressReserve(&at, bytes, alignment, 0, 0), CUDA_SUCCESS);
    return at;
  }
  CUmemGenericAllocationHandle create(std::size_t bytes, int device = 0) const {
    CUmemGenericAllocationHandle handle = 0;
    const CUmemAllocationProp prop = on_device(device);
    EXPECT_EQ(cu.cuMemCreate(&handle, bytes, &prop, 0), CUDA_SUCCESS);
    return handle;
  }
  void map(CUdeviceptr at, std::size_t bytes, CUmemGenericAllocationHandle handle) const {
    EXPECT_EQ(cu.cuMemMap(at, bytes, 0, handle, 0), CUDA_SUCCESS);
  }
  CUresult allow(CUdeviceptr at, std::size_t bytes, int device,
                 CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE) const {
    CUmemAccessDesc desc{};
    desc.location = place(CU_MEM_LOCATION_TYPE_DEVICE, device);
    desc.flags = flags;
    return cu.cuMemSetAccess(at, bytes, &desc, 1);
  }
  /// Reserved, mapped and accessible memory of a device.
  CUdeviceptr memory(std::size_t bytes, int device = 0) const {
    const CUdeviceptr at = reserve(bytes);
    const CUmemGenericAllocationHandle handle = create(bytes, device);
    map(at, bytes, handle);
    EXPECT_EQ(allow(at, bytes, device), CUDA_SUCCESS);
    EXPECT_EQ(cu.cuMemRelease(handle), CUDA_SUCCESS);  // the mapping keeps it
    return at;
  }
  void give_back(CUdeviceptr at, std::size_t bytes) const {
    EXPECT_EQ(cu.cuMemUnmap(at, bytes), CUDA_SUCCESS);
    EXPECT_EQ(cu.cuMemAddressFree(at, bytes), CUDA_SUCCESS);
  }
  CUevent event(unsigned flags = CU_EVENT_DISABLE_TIMING) const {
    CUevent e = nullptr;
    EXPECT_EQ(cu.cuEventCreate(&e, flags), CUDA_SUCCESS);
    return e;
  }
  std::uint64_t id(CUstream stream) const {
    unsigned long long n = 0;
    EXPECT_EQ(cu.cuStreamGetId(stream, &n), CUDA_SUCCESS);
    return n;
  }

  sim::machine machine;
  const driver::table& cu;
};

inline void* pointer(CUdeviceptr at) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(at)); }

/// Time enough for a stream that wrongly goes on to be seen doing so.
inline void let_run() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

}  // namespace weir::test
