// Copies and fills in stream order; pinned and pageable host memory.
#include <cstring>
#include <numeric>

#include "driver/fixture.hpp"

namespace weir::test {
namespace {

class sim_copy : public testing::TestWithParam<bool> {
 protected:
  static sim::machine_config config(bool eager) {
    sim::machine_config c;
    c.eager = eager;
    return c;
  }
};

TEST_P(sim_copy, there_and_back_again) {
  driver_machine m(config(GetParam()));
  const stream_t s = m.machine.create_stream(0);
  const CUdeviceptr at = m.memory(2 * mib);
  std::vector<unsigned> out(1000);
  std::vector<unsigned> in(1000, 0);
  std::iota(out.begin(), out.end(), 1U);
  EXPECT_EQ(m.cu.cuMemcpyHtoDAsync(at, out.data(), 4000, s), CUDA_SUCCESS);
  std::fill(out.begin(), out.end(), 0U);  // pageable: staged when the call returns
  EXPECT_EQ(m.cu.cuMemcpyDtoDAsync(at + mib, at, 4000, s), CUDA_SUCCESS);
  EXPECT_EQ(m.cu.cuMemcpyDtoHAsync(in.data(), at + mib, 4000, s), CUDA_SUCCESS);
  EXPECT_EQ(in[0], 1U);  // into pageable memory the call waits
  EXPECT_EQ(in[999], 1000U);
  EXPECT_EQ(m.cu.cuMemsetD32Async(at, 0xabcd1234U, 250, s), CUDA_SUCCESS);
  EXPECT_EQ(m.cu.cuMemcpyAsync(reinterpret_cast<std::uintptr_t>(in.data()), at, 4000, s), CUDA_SUCCESS);
  EXPECT_EQ(in[249], 0xabcd1234U);
  EXPECT_EQ(in[250], 251U);
  m.give_back(at, 2 * mib);
}

TEST_P(sim_copy, pinned_memory_is_read_when_the_copy_runs) {
  driver_machine m(config(GetParam()));
  const stream_t s = m.machine.create_stream(0);
  const CUdeviceptr at = m.memory(2 * mib);
  void* host = nullptr;
  ASSERT_EQ(m.cu.cuMemHostAlloc(&host, 100, 0), CUDA_SUCCESS);
  std::memset(host, 1, 100);
  sim::gate g = m.machine.hold(s);
  EXPECT_EQ(m.cu.cuMemcpyHtoDAsync(at, host, 100, s), CUDA_SUCCESS);
  std::memset(host, 2, 100);
  g.open();
  m.machine.synchronize(s);
  EXPECT_EQ(*static_cast<char*>(m.machine.view(0, pointer(at), 1)), 2);
  EXPECT_EQ(m.cu.cuMemFreeHost(host), CUDA_SUCCESS);
  m.give_back(at, 2 * mib);
}

TEST_P(sim_copy, between_devices) {
  driver_machine m(config(GetParam()));
  const CUdeviceptr first = m.memory(2 * mib, 0);
  const CUdeviceptr second = m.memory(2 * mib, 1);
  const stream_t s = m.machine.create_stream(0);
  CUcontext c0 = nullptr;
  CUcontext c1 = nullptr;
  m.cu.cuDevicePrimaryCtxRetain(&c0, 0);
  m.cu.cuDevicePrimaryCtxRetain(&c1, 1);
  m.machine.fill(s, pointer(first), 6, 3 * 1024);
  EXPECT_EQ(m.cu.cuMemcpyPeerAsync(second, c1, first, c0, 3 * 1024, s), CUDA_SUCCESS);
  m.machine.expect(s, pointer(first), 6, 3 * 1024, [](std::size_t at, unsigned char) { ADD_FAILURE() << at; });
  m.machine.synchronize(s);
  EXPECT_EQ(static_cast<char*>(m.machine.view(1, pointer(second), 3 * 1024))[3 * 1024 - 1], 6);
  EXPECT_TRUE(m.machine.faults().empty());
  m.cu.cuDevicePrimaryCtxRelease(0);
  m.cu.cuDevicePrimaryCtxRelease(1);
}

INSTANTIATE_TEST_SUITE_P(eager, sim_copy, testing::Bool());

TEST(sim_copy_check, expect_tells_the_first_wrong_byte) {
  driver_machine m;
  const stream_t s = m.machine.create_stream(0);
  const CUdeviceptr at = m.memory(2 * mib);
  m.machine.fill(s, pointer(at), 5, 1000);
  m.machine.fill(s, pointer(at + 700), 6, 1);
  std::size_t offset = 0;
  unsigned char found = 0;
  m.machine.expect(s, pointer(at), 5, 1000, [&](std::size_t o, unsigned char f) {
    offset = o;
    found = f;
  });
  m.machine.synchronize(s);
  EXPECT_EQ(offset, 700U);
  EXPECT_EQ(found, 6);
}

}  // namespace
}  // namespace weir::test
