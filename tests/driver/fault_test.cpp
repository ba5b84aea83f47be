// What the machine finds wrong, failures made to order, lost and reset devices.
#include <atomic>
#include <cstring>

#include "driver/fixture.hpp"

namespace weir::test {
namespace {

TEST(sim_fault, a_kernel_that_touches_unmapped_memory_loses_its_device) {
  driver_machine m;
  const CUdeviceptr at = m.memory(2 * mib);
  const stream_t s = m.machine.create_stream(0);
  const stream_t other = m.machine.create_stream(1);
  sim::gate g = m.machine.hold(s);
  m.machine.fill(s, pointer(at), 1, 100);  // queued: resolved when it runs
  m.give_back(at, 2 * mib);
  std::atomic<int> after{0};
  m.machine.launch(s, [&] { after = 1; });
  g.open();
  EXPECT_EQ(m.cu.cuStreamSynchronize(s), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(after, 0);
  ASSERT_EQ(m.machine.faults().size(), 1U);
  EXPECT_EQ(m.machine.faults()[0].kind, sim::fault_kind::illegal_access);
  EXPECT_EQ(m.machine.faults()[0].device, 0);
  EXPECT_EQ(m.cu.cuStreamQuery(s), CUDA_ERROR_ILLEGAL_ADDRESS);  // it sticks
  CUmemGenericAllocationHandle handle = 0;
  const CUmemAllocationProp prop = driver_machine::on_device(0);
  EXPECT_EQ(m.cu.cuMemCreate(&handle, 2 * mib, &prop, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
  m.machine.synchronize(other);  // the other device works on
}

TEST(sim_fault, faults_need_not_stick) {
  sim::machine_config config;
  config.sticky_faults = false;
  driver_machine m(config);
  const stream_t s = m.machine.create_stream(0);
  std::vector<sim::fault> told;
  m.machine.on_fault([&](const sim::fault& f) { told.push_back(f); });
  m.machine.launch(s, [] { sim::view(0, reinterpret_cast<void*>(0x1000), 8); });
  m.machine.synchronize(s);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_NE(told[0].text.find("0x1000 (8 bytes) is no device memory"), std::string::npos);
  m.machine.clear_faults();
  EXPECT_TRUE(m.machine.faults().empty());
}

TEST(sim_fault, memory_for_another_device_is_refused) {
  driver_machine m;
  const CUdeviceptr at = m.memory(2 * mib, 0);
  const stream_t s = m.machine.create_stream(1);
  m.machine.fill(s, pointer(at), 1, 16);
  EXPECT_THROW(m.machine.synchronize(s), std::runtime_error);
  ASSERT_EQ(m.machine.faults().size(), 1U);
  EXPECT_NE(m.machine.faults()[0].text.find("kernel on device 1"), std::string::npos);
  EXPECT_NE(m.machine.faults()[0].text.find("is not writable by the device"), std::string::npos);
}

TEST(sim_fault, unmapping_under_a_running_kernel_is_found) {
  driver_machine m;
  const CUdeviceptr at = m.memory(2 * mib);
  const stream_t s = m.machine.create_stream(0);
  std::atomic<int> step{0};
  m.machine.launch(s, [&] {
    auto* p = static_cast<volatile char*>(sim::view(0, pointer(at), 16));
    p[0] = 5;
    step = 1;
    while (step == 1) std::this_thread::yield();
    p[1] = p[0];  // must not crash the test
  });
  while (step == 0) std::this_thread::yield();
  EXPECT_EQ(m.cu.cuMemUnmap(at, 2 * mib), CUDA_SUCCESS);
  step = 2;
  m.machine.synchronize(s);
  ASSERT_EQ(m.machine.faults().size(), 1U);
  EXPECT_EQ(m.machine.faults()[0].kind, sim::fault_kind::busy_unmap);
  EXPECT_EQ(m.cu.cuMemAddressFree(at, 2 * mib), CUDA_SUCCESS);
  EXPECT_EQ(m.machine.reserved_bytes(0), 0U);
}

TEST(sim_fault, unmapping_one_alias_while_a_kernel_uses_the_other_is_fine) {
  driver_machine m;
  const CUdeviceptr one = m.reserve(2 * mib);
  const CUdeviceptr two = m.reserve(2 * mib);
  const auto handle = m.create(2 * mib);
  m.map(one, 2 * mib, handle);
  m.map(two, 2 * mib, handle);
  m.allow(one, 2 * mib, 0);
  m.allow(two, 2 * mib, 0);
  m.cu.cuMemRelease(handle);
  std::atomic<int> step{0};
  const stream_t s = m.machine.create_stream(0);
  m.machine.launch(s, [&] {
    sim::view(0, pointer(two), 16);
    step = 1;
    while (step == 1) std::this_thread::yield();
  });
  while (step == 0) std::this_thread::yield();
  m.give_back(one, 2 * mib);
  step = 2;
  m.machine.synchronize(s);
  EXPECT_TRUE(m.machine.faults().empty());
  m.give_back(two, 2 * mib);
}

TEST(sim_fault, queued_work_sees_the_mapping_of_the_time_it_runs) {
  driver_machine m;
  const CUdeviceptr at = m.reserve(2 * mib);
  const auto before = m.create(2 * mib);
  const auto after = m.create(2 * mib);
  m.map(at, 2 * mib, before);
  m.allow(at, 2 * mib, 0);
  const stream_t s = m.machine.create_stream(0);
  sim::gate g = m.machine.hold(s);
  m.machine.fill(s, pointer(at), 7, 64);
  m.cu.cuMemUnmap(at, 2 * mib);
  m.map(at, 2 * mib, after);
  m.allow(at, 2 * mib, 0);
  g.open();
  m.machine.synchronize(s);
  EXPECT_EQ(*static_cast<char*>(m.machine.view(0, pointer(at), 1)), 7);
  m.cu.cuMemUnmap(at, 2 * mib);
  m.map(at, 2 * mib, before);
  m.allow(at, 2 * mib, 0);
  EXPECT_EQ(*static_cast<char*>(m.machine.view(0, pointer(at), 1)), 0);
  m.cu.cuMemRelease(before);
  m.cu.cuMemRelease(after);
  m.give_back(at, 2 * mib);
}

TEST(sim_fault, a_kernel_that_throws_is_a_failed_launch) {
  driver_machine m;
  const stream_t s = m.machine.create_stream(0);
  m.machine.launch(s, [] { throw std::runtime_error("bad kernel"); });
  EXPECT_EQ(m.cu.cuStreamSynchronize(s), CUDA_ERROR_LAUNCH_FAILED);
  ASSERT_EQ(m.machine.faults().size(), 1U);
  EXPECT_EQ(m.machine.faults()[0].kind, sim::fault_kind::kernel_failed);
}

TEST(sim_fault, calls_fail_to_order) {
  driver_machine m;
  CUmemGenericAllocationHandle handle = 0;
  const CUmemAllocationProp first = driver_machine::on_device(0);
  const CUmemAllocationProp second = driver_machine::on_device(1);
  m.machine.fail("cuMemCreate", 2, sim::result::out_of_memory, 2);
  std::vector<CUresult> results;
  for (int i = 0; i < 4; ++i) {
    results.push_back(m.cu.cuMemCreate(&handle, 2 * mib, &first, 0));
    if (results.back() == CUDA_SUCCESS) m.cu.cuMemRelease(handle);
  }
  EXPECT_EQ(results,
            (std::vector<CUresult>{CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY, CUDA_SUCCESS}));
  m.machine.fail("cuMemCreate", 1, sim::result::unknown, 1, 1);  // on device 1 only
  EXPECT_EQ(m.cu.cuMemCreate(&handle, 2 * mib, &first, 0), CUDA_SUCCESS);
  EXPECT_EQ(m.cu.cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(m.cu.cuMemCreate(&handle, 2 * mib, &second, 0), CUDA_ERROR_UNKNOWN);
  m.machine.fail("cuMemMap", 1);
  m.machine.clear_failures();
  const CUdeviceptr at = m.memory(2 * mib);
  m.give_back(at, 2 * mib);
  EXPECT_THROW(m.machine.fail("cuNothing", 1), std::invalid_argument);
  EXPECT_EQ(m.machine.live(), sim::live_counts{});
}

TEST(sim_fault, a_killed_device_drops_its_work_and_says_why) {
  driver_machine m;
  const stream_t s = m.machine.create_stream(0);
  const stream_t waiting = m.machine.create_stream(0);
  const stream_t elsewhere = m.machine.create_stream(1);
  const sim::gate g = m.machine.hold(s);
  std::atomic<int> ran{0};
  std::atomic<int> ran_elsewhere{0};
  m.machine.launch(s, [&] { ran = 1; });
  m.machine.order(s, waiting);
  m.machine.order(s, elsewhere);
  m.machine.launch(elsewhere, [&] { ran_elsewhere = 1; });
  m.machine.kill(0, sim::result::ecc_uncorrectable);
  EXPECT_EQ(m.cu.cuStreamSynchronize(s), CUDA_ERROR_ECC_UNCORRECTABLE);
  EXPECT_EQ(m.cu.cuCtxSynchronize(), CUDA_ERROR_ECC_UNCORRECTABLE);
  m.machine.synchronize(elsewhere);  // is not left waiting
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(ran_elsewhere, 1);
}

TEST(sim_fault, a_reset_device_forgets_everything_and_works_again) {
  sim::machine_config config;
  config.reuse_handles = false;
  driver_machine m(config);
  const CUdeviceptr at = m.memory(2 * mib);
  const auto handle = m.create(2 * mib);
  const stream_t s = m.machine.create_stream(0);
  const CUevent e = m.event();
  CUdeviceptr plain = 0;
  EXPECT_EQ(m.cu.cuMemAlloc(&plain, 100), CUDA_SUCCESS);
  m.machine.kill(0);
  m.machine.reset(0);
  EXPECT_FALSE(m.machine.context_active(0));
  EXPECT_EQ(m.machine.reserved_bytes(0), 0U);
  EXPECT_EQ(m.cu.cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(m.cu.cuEventQuery(e), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(m.cu.cuStreamQuery(s), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(m.cu.cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_FALSE(m.machine.accessible(0, pointer(at), 1));
  m.give_back(at, 2 * mib);
  EXPECT_EQ(m.machine.live(), sim::live_counts{});

  const stream_t again = m.machine.create_stream(0);
  const CUdeviceptr fresh = m.memory(2 * mib);
  m.machine.fill(again, pointer(fresh), 4, 10);
  m.machine.synchronize(again);
  m.give_back(fresh, 2 * mib);
}

TEST(sim_fault, work_of_a_reset_device_never_runs_afterwards) {
  driver_machine m;
  const stream_t s = m.machine.create_stream(0);
  sim::gate g = m.machine.hold(s);
  std::atomic<int> ran{0};
  m.machine.launch(s, [&] { ran = 1; });
  m.machine.reset(0);
  g.open();
  let_run();
  EXPECT_EQ(ran, 0);
  ASSERT_EQ(m.machine.faults().size(), 1U);
  EXPECT_EQ(m.machine.faults()[0].kind, sim::fault_kind::busy_context);
}

}  // namespace
}  // namespace weir::test
