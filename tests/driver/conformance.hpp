#pragma once
// One set of expectations for the simulated driver and, where there is a GPU, for the installed one.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "weir/simulation.hpp"

#include "driver/real.hpp"
#include "driver/table.hpp"

namespace weir::test {

enum class which_driver { simulated, installed };

/// Device 0's context is current; `gate_word` is pinned host memory that streams can wait for.
class conformance : public testing::TestWithParam<which_driver> {
 protected:
  static constexpr std::size_t chunk = std::size_t{2} << 20;

  void SetUp() override {
    if (GetParam() == which_driver::simulated) {
      machine_ = std::make_unique<sim::machine>();
      cu_ = &machine_->table();
    } else {
      const driver::real_driver found = driver::open_real_driver();
      int count = 0;
      if (found.functions == nullptr) GTEST_SKIP() << "no GPU: " << found.error;
      if (found.functions->cuInit(0) != CUDA_SUCCESS || found.functions->cuDeviceGetCount(&count) != CUDA_SUCCESS ||
          count == 0) {
        GTEST_SKIP() << "no GPU: the driver finds no device";
      }
      cu_ = found.functions;
    }
    ASSERT_EQ(cu().cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(cu().cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(cu().cuCtxPushCurrent(context), CUDA_SUCCESS);
    void* word = nullptr;
    ASSERT_EQ(cu().cuMemHostAlloc(&word, 4096, 0), CUDA_SUCCESS);
    gate_word = static_cast<std::atomic<std::uint64_t>*>(word);
    gate_word->store(0);
  }

  void TearDown() override {
    if (gate_word == nullptr) return;
    open();
    cu().cuCtxSynchronize();
    cu().cuMemFreeHost(gate_word);
    cu().cuCtxPopCurrent(nullptr);
    cu().cuDevicePrimaryCtxRelease(0);
  }

  [[nodiscard]] const driver::table& cu() const { return *cu_; }

  /// Everything queued on the stream from now on waits for open().
  void hold(CUstream s) {
    CUdeviceptr at = 0;
    ASSERT_EQ(cu().cuMemHostGetDevicePointer(&at, gate_word, 0), CUDA_SUCCESS);
    ASSERT_EQ(cu().cuStreamWaitValue64(s, at, 1, CU_STREAM_WAIT_VALUE_GEQ), CUDA_SUCCESS);
  }
  void open() { gate_word->store(1); }
  void close() { gate_word->store(0); }

  CUstream stream(unsigned flags = CU_STREAM_NON_BLOCKING) {
    CUstream s = nullptr;
    EXPECT_EQ(cu().cuStreamCreate(&s, flags), CUDA_SUCCESS);
    return s;
  }
  CUevent event() {
    CUevent e = nullptr;
    EXPECT_EQ(cu().cuEventCreate(&e, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    return e;
  }
  std::uint64_t id(CUstream s) {
    unsigned long long n = 0;
    EXPECT_EQ(cu().cuStreamGetId(s, &n), CUDA_SUCCESS);
    return n;
  }

  CUmemGenericAllocationHandle create(std::size_t bytes = chunk) {
    CUmemAllocationProp prop{};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_EQ(cu().cuMemCreate(&handle, bytes, &prop, 0), CUDA_SUCCESS);
    return handle;
  }
  CUdeviceptr reserve(std::size_t bytes = chunk) {
    CUdeviceptr at = 0;
    EXPECT_EQ(cu().cuMemAddressReserve(&at, bytes, 0, 0, 0), CUDA_SUCCESS);
    return at;
  }
  void map(CUdeviceptr at, CUmemGenericAllocationHandle handle, std::size_t bytes = chunk) {
    EXPECT_EQ(cu().cuMemMap(at, bytes, 0, handle, 0), CUDA_SUCCESS);
    CUmemAccessDesc desc{};
    desc.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    desc.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    EXPECT_EQ(cu().cuMemSetAccess(at, bytes, &desc, 1), CUDA_SUCCESS);
  }
  void unmap(CUdeviceptr at, std::size_t bytes = chunk) { EXPECT_EQ(cu().cuMemUnmap(at, bytes), CUDA_SUCCESS); }

  /// First byte at a device address, after all that the stream was given.
  unsigned char read(CUdeviceptr at, CUstream s) {
    unsigned char byte = 0;
    EXPECT_EQ(cu().cuMemcpyDtoHAsync(&byte, at, 1, s), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuStreamSynchronize(s), CUDA_SUCCESS);
    return byte;
  }

  /// Ends the capture: what it gave, the graph destroyed.
  CUresult end_capture(CUstream s) {
    CUgraph graph = nullptr;
    const CUresult result = cu().cuStreamEndCapture(s, &graph);
    if (graph != nullptr) cu().cuGraphDestroy(graph);
    return result;
  }

  CUcontext context = nullptr;
  std::atomic<std::uint64_t>* gate_word = nullptr;

 private:
  std::unique_ptr<sim::machine> machine_;
  const driver::table* cu_ = nullptr;
};

inline std::string name_of_driver(const testing::TestParamInfo<which_driver>& param) {
  return param.param == which_driver::simulated ? "simulated" : "installed";
}

}  // namespace weir::test
