// Pinned memory, plain device allocations, and what the driver knows of an address.
#include <atomic>

#include "driver/fixture.hpp"

namespace weir::test {
namespace {

TEST(sim_pinned, allocated_and_registered_memory_is_counted) {
  driver_machine m;
  void* host = nullptr;
  EXPECT_EQ(m.cu.cuMemHostAlloc(&host, 10000, 0), CUDA_SUCCESS);
  std::vector<char> own(8192);
  EXPECT_EQ(m.cu.cuMemHostRegister(own.data(), own.size(), 0), CUDA_SUCCESS);
  EXPECT_EQ(m.cu.cuMemHostRegister(own.data() + 100, 10, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  EXPECT_EQ(m.machine.live().pinned_blocks, 2U);
  EXPECT_EQ(m.machine.live().pinned_bytes, 12288U + 8192U);
  CUdeviceptr at = 0;
  EXPECT_EQ(m.cu.cuMemHostGetDevicePointer(&at, own.data(), 0), CUDA_SUCCESS);
  EXPECT_EQ(pointer(at), own.data());
  EXPECT_EQ(m.machine.view(1, own.data(), 8192), own.data());  // every device may use it
  EXPECT_EQ(m.cu.cuMemHostUnregister(own.data()), CUDA_SUCCESS);
  EXPECT_EQ(m.cu.cuMemHostUnregister(own.data()), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  EXPECT_EQ(m.cu.cuMemFreeHost(host), CUDA_SUCCESS);
  EXPECT_EQ(m.machine.live(), sim::live_counts{});
}

// As measured: these wait for kernels on the current device, and for no other.
TEST(sim_pinned, giving_back_waits_for_the_current_device) {
  driver_machine m;
  std::vector<char> own(4096);
  CUdeviceptr plain = 0;
  m.cu.cuMemHostRegister(own.data(), own.size(), 0);
  m.cu.cuMemAlloc(&plain, 4096);
  const stream_t elsewhere = m.machine.create_stream(1);
  const stream_t here = m.machine.create_stream(0);
  const sim::gate other = m.machine.hold(elsewhere);
  for (int call = 0; call < 2; ++call) {
    sim::gate g = m.machine.hold(here);
    std::atomic<bool> returned{false};
    std::thread waiter([&] {
      m.machine.set_device(0);
      EXPECT_EQ(call == 0 ? m.cu.cuMemHostUnregister(own.data()) : m.cu.cuMemFree(plain), CUDA_SUCCESS);
      returned = true;
    });
    let_run();
    EXPECT_FALSE(returned);
    g.open();
    waiter.join();
  }
  EXPECT_FALSE(m.machine.idle(elsewhere));
}

TEST(sim_plain, allocations_are_reached_by_peers_that_were_enabled) {
  driver_machine m;
  CUdeviceptr at = 0;
  ASSERT_EQ(m.cu.cuMemAlloc(&at, 3 * mib), CUDA_SUCCESS);
  EXPECT_EQ(m.machine.reserved_bytes(0), 4 * mib);
  EXPECT_EQ(m.machine.live().allocations, 1U);
  EXPECT_EQ(m.machine.live().reservations, 0U);
  EXPECT_TRUE(m.machine.accessible(0, pointer(at), 3 * mib));
  EXPECT_FALSE(m.machine.accessible(1, pointer(at), 1));
  CUcontext first = nullptr;
  m.cu.cuCtxGetCurrent(&first);
  m.machine.set_device(1);
  EXPECT_EQ(m.cu.cuCtxEnablePeerAccess(first, 0), CUDA_SUCCESS);
  EXPECT_EQ(m.cu.cuCtxEnablePeerAccess(first, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  EXPECT_TRUE(m.machine.accessible(1, pointer(at), 1));
  EXPECT_EQ(m.cu.cuCtxDisablePeerAccess(first), CUDA_SUCCESS);
  EXPECT_EQ(m.cu.cuCtxDisablePeerAccess(first), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  EXPECT_FALSE(m.machine.accessible(1, pointer(at), 1));
  EXPECT_EQ(m.cu.cuMemFree(at), CUDA_SUCCESS);
  EXPECT_EQ(m.cu.cuMemFree(at), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(m.cu.cuMemFree(0), CUDA_SUCCESS);
  EXPECT_EQ(m.machine.reserved_bytes(0), 0U);
}

TEST(sim_plain, stream_ordered_frees_happen_in_stream_order) {
  driver_machine m;
  const stream_t s = m.machine.create_stream(0);
  CUdeviceptr at = 0;
  ASSERT_EQ(m.cu.cuMemAllocAsync(&at, 1000, s), CUDA_SUCCESS);
  sim::gate g = m.machine.hold(s);
  m.machine.fill(s, pointer(at), 1, 1000);
  EXPECT_EQ(m.cu.cuMemFreeAsync(at, s), CUDA_SUCCESS);
  EXPECT_EQ(m.cu.cuMemFreeAsync(at, s), CUDA_ERROR_INVALID_VALUE);
  EXPECT_NE(m.machine.reserved_bytes(0), 0U);
  g.open();
  m.machine.synchronize(s);
  EXPECT_EQ(m.machine.reserved_bytes(0), 0U);
  EXPECT_TRUE(m.machine.faults().empty());
}

TEST(sim_plain, pointers_can_be_asked_what_they_are) {
  driver_machine m;
  const CUdeviceptr at = m.memory(4 * mib, 1);
  unsigned type = 0;
  int device = -1;
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  EXPECT_EQ(m.cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at + 5), CUDA_SUCCESS);
  EXPECT_EQ(type, static_cast<unsigned>(CU_MEMORYTYPE_DEVICE));
  EXPECT_EQ(m.cu.cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at + 5), CUDA_SUCCESS);
  EXPECT_EQ(device, 1);
  EXPECT_EQ(m.cu.cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at + 5), CUDA_SUCCESS);
  EXPECT_EQ(base, at);
  EXPECT_EQ(m.cu.cuMemGetAddressRange(&base, &bytes, at + 5), CUDA_SUCCESS);
  EXPECT_EQ(bytes, 4 * mib);
  int local = 0;
  EXPECT_EQ(
      m.cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<std::uintptr_t>(&local)),
      CUDA_ERROR_INVALID_VALUE);
  m.give_back(at, 4 * mib);
}

}  // namespace
}  // namespace weir::test
