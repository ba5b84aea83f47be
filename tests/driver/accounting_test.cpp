// Counting: the counted api, the machine's own counts, and simulated costs.
#include <atomic>

#include "driver/api.hpp"
#include "driver/error.hpp"
#include "driver/fixture.hpp"

namespace weir::test {
namespace {

std::uint64_t ns_of(const sim::machine& m, std::string_view name) {
  for (const sim::call_record& r : m.calls()) {
    if (r.name == name) return static_cast<std::uint64_t>(r.cost.count());
  }
  return 0;
}

TEST(counters, calls_are_counted_and_the_slow_ones_timed) {
  driver_machine m;
  driver::call_counters counters;
  const driver::api api(m.cu, counters);
  m.machine.set_cost("cuMemGetInfo", std::chrono::milliseconds(2));
  std::size_t free = 0;
  std::size_t total = 0;
  EXPECT_EQ(api.cuMemGetInfo(&free, &total), CUDA_SUCCESS);
  EXPECT_EQ(api.cuMemGetInfo(nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_GE(counters.of(driver::call::k_cuMemGetInfo).nanoseconds, 2'000'000U);
  EXPECT_EQ(counters.of(driver::call::k_cuMemGetInfo).count, 2U);
  const CUevent e = m.event();
  EXPECT_EQ(api.cuEventQuery(e), CUDA_SUCCESS);
  EXPECT_EQ(counters.of(driver::call::k_cuEventQuery).count, 1U);
  EXPECT_EQ(counters.of(driver::call::k_cuEventQuery).nanoseconds, 0U);  // only counted
  const auto all = counters.snapshot();
  std::uint64_t sum = 0;
  for (const auto& entry : all) sum += entry.count;
  EXPECT_EQ(sum, 3U);
}

TEST(counters, a_missing_optional_call_is_an_error_and_not_a_crash) {
  sim::machine_config config;
  config.context_events = false;
  driver_machine m(config);
  driver::call_counters counters;
  const driver::api api(m.cu, counters);
  EXPECT_EQ(m.cu.cuCtxRecordEvent, nullptr);
  EXPECT_EQ(api.cuCtxRecordEvent(CUcontext{nullptr}, CUevent{nullptr}), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(counters.of(driver::call::k_cuCtxRecordEvent).count, 0U);
}

TEST(counters, the_list_of_calls_names_each_once) {
  for (std::size_t i = 0; i < driver::call_count; ++i) EXPECT_EQ(driver::find_call(driver::call_list[i].name), i);
  EXPECT_EQ(driver::find_call("cuNothing"), driver::call_count);
  EXPECT_EQ(driver::info(driver::call::k_cuMemAlloc).name, "cuMemAlloc");  // not cuMemAlloc_v2
}

TEST(counters, results_are_described_in_one_line) {
  const sim::machine m;
  EXPECT_EQ(driver::describe(m.table(), "cuMemMap", CUDA_ERROR_OUT_OF_MEMORY),
            "cuMemMap: CUDA_ERROR_OUT_OF_MEMORY (2)");
  EXPECT_EQ(driver::describe(driver::table{}, "cuMemMap", CUDA_ERROR_OUT_OF_MEMORY), "cuMemMap: error (2)");
  const char* text = nullptr;
  EXPECT_EQ(m.table().cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text), CUDA_SUCCESS);
  EXPECT_STREQ(text, "out of memory");
  EXPECT_EQ(m.table().cuGetErrorName(static_cast<CUresult>(997), &text), CUDA_ERROR_INVALID_VALUE);
  EXPECT_TRUE(driver::is_sticky(CUDA_ERROR_ILLEGAL_ADDRESS));
  EXPECT_FALSE(driver::is_sticky(CUDA_ERROR_OUT_OF_MEMORY));
  EXPECT_TRUE(driver::is_gone(CUDA_ERROR_DEINITIALIZED));
}

TEST(sim_costs, the_machine_counts_calls_and_failures) {
  driver_machine m;
  m.machine.reset_calls();
  CUmemGenericAllocationHandle handle = 0;
  const CUmemAllocationProp prop = driver_machine::on_device(0);
  EXPECT_EQ(m.cu.cuMemCreate(&handle, 3, &prop, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(m.cu.cuMemCreate(&handle, 2 * mib, &prop, 0), CUDA_SUCCESS);
  EXPECT_EQ(m.machine.calls("cuMemCreate"), 2U);
  ASSERT_EQ(m.machine.calls().size(), 1U);
  EXPECT_EQ(m.machine.calls()[0].failed, 1U);
  m.cu.cuMemRelease(handle);
}

TEST(sim_costs, measured_costs_go_by_handle_and_size) {
  driver_machine m;
  m.machine.use_default_costs();
  m.machine.reset_calls();
  const CUdeviceptr at = m.reserve(64 * mib);
  const auto small = m.create(2 * mib);
  const auto large = m.create(32 * mib);
  EXPECT_EQ(ns_of(m.machine, "cuMemCreate"), 9'400U + 20'000U);
  m.map(at, 2 * mib, small);
  m.map(at + 2 * mib, 32 * mib, large);
  EXPECT_EQ(ns_of(m.machine, "cuMemMap"), 1'400U + 1'100U);
  m.allow(at, 34 * mib, 0);  // one call, two handles
  EXPECT_EQ(ns_of(m.machine, "cuMemSetAccess"), 29'800U + 40'000U);
  m.cu.cuMemUnmap(at, 34 * mib);
  EXPECT_EQ(ns_of(m.machine, "cuMemUnmap"), 17'500U + 27'000U);
  m.cu.cuMemRelease(small);
  m.cu.cuMemRelease(large);
  EXPECT_EQ(ns_of(m.machine, "cuMemRelease"), 11'700U + 34'000U);
  m.cu.cuMemAddressFree(at, 64 * mib);
}

TEST(sim_costs, a_slow_device_slows_nobody_else) {
  driver_machine m;
  m.machine.set_cost("cuMemCreate", std::chrono::milliseconds(300), 0);
  std::atomic<bool> slow_done{false};
  std::thread slow([&] {
    m.cu.cuMemRelease(m.create(2 * mib, 0));
    slow_done = true;
  });
  while (m.machine.reserved_bytes(0) == 0) std::this_thread::yield();  // it is under way
  for (int i = 0; i < 20; ++i) m.cu.cuMemRelease(m.create(2 * mib, 1));
  const CUevent e = m.event();
  m.cu.cuEventQuery(e);
  EXPECT_FALSE(slow_done);
  slow.join();
}

TEST(sim_costs, slept_costs_serialise_as_the_driver_does) {
  driver_machine m;
  m.machine.set_cost("cuMemCreate", std::chrono::milliseconds(10), 0);
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { m.cu.cuMemRelease(m.create(2 * mib, 0)); });
  for (auto& t : threads) t.join();
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(40));
}

}  // namespace
}  // namespace weir::test
