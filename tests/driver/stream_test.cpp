// Streams: order, gates, identity, dead handles, default streams.
#include <atomic>
#include <set>

#include "driver/fixture.hpp"

namespace weir::test {
namespace {

TEST(sim_stream, kernels_run_in_order) {
  driver_machine m;
  const stream_t s = m.machine.create_stream(0);
  std::vector<int> seen;
  for (int i = 0; i < 100; ++i) m.machine.launch(s, [&seen, i] { seen.push_back(i); });
  m.machine.synchronize(s);
  ASSERT_EQ(seen.size(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(seen[static_cast<std::size_t>(i)], i);
  m.machine.destroy_stream(s);
}

TEST(sim_stream, a_gate_holds_its_stream_and_no_other) {
  driver_machine m;
  const stream_t held = m.machine.create_stream(0);
  const stream_t other = m.machine.create_stream(0);
  std::atomic<int> first{0};
  std::atomic<int> second{0};
  sim::gate g = m.machine.hold(held);
  m.machine.launch(held, [&] { first = 1; });
  m.machine.launch(other, [&] { second = 1; });
  m.machine.synchronize(other);
  let_run();
  EXPECT_EQ(second, 1);
  EXPECT_EQ(first, 0);
  EXPECT_FALSE(m.machine.idle(held));
  g.open();
  m.machine.synchronize(held);
  EXPECT_EQ(first, 1);
}

TEST(sim_stream, streams_wait_for_each_other) {
  driver_machine m;
  const stream_t a = m.machine.create_stream(0);
  const stream_t b = m.machine.create_stream(1);
  std::atomic<int> value{0};
  sim::gate g = m.machine.hold(a);
  m.machine.launch(a, [&] { value = 1; });
  m.machine.order(a, b);
  std::atomic<int> seen{-1};
  m.machine.launch(b, [&] { seen = value.load(); });
  m.machine.order(b, a);  // and back: no deadlock
  m.machine.launch(a, [&] { value = 2; });
  let_run();
  EXPECT_EQ(seen, -1);
  g.open();
  m.machine.synchronize(a);
  EXPECT_EQ(seen, 1);
  EXPECT_EQ(value, 2);
}

TEST(sim_stream, kernels_of_many_streams_may_wait_for_one_another) {
  driver_machine m;
  constexpr int count = 48;
  std::atomic<int> arrived{0};
  std::vector<stream_t> streams;
  for (int i = 0; i < count; ++i) streams.push_back(m.machine.create_stream(i % 2));
  for (const stream_t s : streams) {
    m.machine.launch(s, [&] {
      ++arrived;
      while (arrived < count) std::this_thread::yield();
    });
  }
  for (const stream_t s : streams) m.machine.synchronize(s);
  EXPECT_EQ(arrived, count);
}

TEST(sim_stream, a_long_chain_of_waits_does_not_deepen_the_stack) {
  driver_machine m;
  std::vector<stream_t> streams;
  for (int i = 0; i < 5000; ++i) streams.push_back(m.machine.create_stream(0));
  sim::gate g = m.machine.hold(streams[0]);
  for (std::size_t i = 1; i < streams.size(); ++i) m.machine.order(streams[i - 1], streams[i]);
  EXPECT_FALSE(m.machine.idle(streams.back()));
  g.open();
  m.machine.synchronize(streams.back());
  EXPECT_TRUE(m.machine.idle(streams[2500]));
}

TEST(sim_stream, handles_come_back_and_ids_do_not) {
  driver_machine m;
  const stream_t first = m.machine.create_stream(0);
  const std::uint64_t first_id = m.id(first);
  const sim::gate g = m.machine.hold(first);
  m.machine.destroy_stream(first);  // with work pending
  const stream_t second = m.machine.create_stream(1);
  EXPECT_EQ(second, first);
  EXPECT_NE(m.id(second), first_id);
  EXPECT_TRUE(m.machine.idle(second));
}

TEST(sim_stream, a_dead_handle_is_a_fault_and_not_a_crash) {
  sim::machine_config config;
  config.reuse_handles = false;
  driver_machine m(config);
  const stream_t gone = m.machine.create_stream(0);
  m.machine.destroy_stream(gone);
  EXPECT_NE(m.machine.create_stream(0), gone);
  unsigned long long id = 0;
  EXPECT_EQ(m.cu.cuStreamGetId(gone, &id), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(m.cu.cuStreamQuery(gone), CUDA_ERROR_INVALID_HANDLE);
  int nothing = 0;
  EXPECT_EQ(m.cu.cuStreamQuery(reinterpret_cast<CUstream>(&nothing)), CUDA_ERROR_INVALID_HANDLE);
  const auto faults = m.machine.faults();
  ASSERT_EQ(faults.size(), 3U);
  EXPECT_EQ(faults[0].kind, sim::fault_kind::dead_handle);
  EXPECT_NE(faults[0].text.find("was destroyed"), std::string::npos);
  EXPECT_NE(faults[2].text.find("was never made"), std::string::npos);
}

TEST(sim_stream, the_per_thread_stream_is_another_in_each_thread) {
  driver_machine m;
  const std::uint64_t mine = m.id(CU_STREAM_PER_THREAD);
  EXPECT_EQ(m.id(CU_STREAM_PER_THREAD), mine);
  const sim::gate g = m.machine.hold(CU_STREAM_PER_THREAD);
  std::uint64_t theirs = 0;
  bool theirs_idle = false;
  std::thread([&] {
    m.machine.set_device(0);
    theirs = m.id(CU_STREAM_PER_THREAD);
    theirs_idle = m.machine.idle(CU_STREAM_PER_THREAD);
  }).join();
  EXPECT_NE(theirs, mine);
  EXPECT_TRUE(theirs_idle);
  EXPECT_FALSE(m.machine.idle(CU_STREAM_PER_THREAD));
  m.machine.set_device(1);
  EXPECT_NE(m.id(CU_STREAM_PER_THREAD), mine);  // and in each device
  EXPECT_EQ(m.machine.live().streams, 0U);
}

TEST(sim_stream, the_legacy_stream_waits_for_blocking_streams_and_they_for_it) {
  driver_machine m;
  const stream_t blocking = m.machine.create_stream(0, true);
  const stream_t free = m.machine.create_stream(0, false);
  sim::gate first = m.machine.hold(blocking);
  std::atomic<int> legacy{0};
  m.machine.launch(nullptr, [&] { legacy = 1; });
  const sim::gate never = m.machine.hold(free);
  let_run();
  EXPECT_EQ(legacy, 0);
  first.open();
  m.machine.synchronize(stream_t{nullptr});
  EXPECT_EQ(legacy, 1);

  sim::gate second = m.machine.hold(nullptr);
  std::atomic<int> after{0};
  m.machine.launch(blocking, [&] { after = 1; });
  let_run();
  EXPECT_EQ(after, 0);
  second.open();
  m.machine.synchronize(blocking);
  EXPECT_EQ(after, 1);
}

TEST(sim_stream, calls_from_kernels_are_refused) {
  driver_machine m;
  const stream_t s = m.machine.create_stream(0);
  CUresult inside = CUDA_SUCCESS;
  CUresult in_host_function = CUDA_SUCCESS;
  m.machine.launch(s, [&] { inside = m.cu.cuEventQuery(nullptr); });
  struct box {
    const driver::table* cu;
    CUresult* out;
  } data{&m.cu, &in_host_function};
  EXPECT_EQ(m.cu.cuLaunchHostFunc(
                s,
                [](void* p) {
                  const auto* b = static_cast<box*>(p);
                  *b->out = b->cu->cuStreamQuery(nullptr);
                },
                &data),
            CUDA_SUCCESS);
  m.machine.synchronize(s);
  EXPECT_EQ(inside, CUDA_ERROR_NOT_PERMITTED);
  EXPECT_EQ(in_host_function, CUDA_ERROR_NOT_PERMITTED);
  ASSERT_EQ(m.machine.faults().size(), 2U);
  EXPECT_EQ(m.machine.faults()[0].kind, sim::fault_kind::call_in_callback);
  EXPECT_EQ(m.machine.faults()[0].text, "cuEventQuery called from a kernel or host function");
}

TEST(sim_stream, short_lived_threads_leave_no_streams) {
  driver_machine m;
  std::set<std::uint64_t> ids;
  for (int i = 0; i < 50; ++i) {
    std::thread([&] {
      m.machine.set_device(0);
      ids.insert(m.id(CU_STREAM_PER_THREAD));
    }).join();
  }
  EXPECT_EQ(ids.size(), 50U);
}

TEST(sim_stream, sixteen_machines_at_once_and_no_more) {
  std::vector<std::unique_ptr<sim::machine>> machines;
  for (int i = 0; i < 16; ++i) machines.push_back(std::make_unique<sim::machine>());
  EXPECT_THROW(sim::machine{}, std::runtime_error);
  machines.pop_back();
  sim::machine again;
  int version = 0;
  EXPECT_EQ(again.table().cuDriverGetVersion(&version), CUDA_SUCCESS);
  EXPECT_EQ(version, 13000);
}

TEST(sim_stream, a_table_outlives_its_machine_without_harm) {
  driver::table left;
  {
    const sim::machine m;
    left = m.table();
  }
  EXPECT_EQ(left.cuInit(0), CUDA_ERROR_DEINITIALIZED);
}

TEST(sim_stream, a_machine_ends_with_work_still_queued) {
  const sim::gate g;
  std::atomic<int> ran{0};
  {
    sim::machine m;
    const stream_t s = m.create_stream(0);
    m.wait(s, g);
    m.launch(s, [&] { ran = 1; });
  }
  EXPECT_EQ(ran, 0);
  sim::gate late = g;
  late.open();  // nobody is left to wake
}

TEST(sim_stream, values_written_in_order_release_a_waiting_stream) {
  driver_machine m;
  const CUdeviceptr word = m.memory(2 * mib);
  const stream_t waiter = m.machine.create_stream(0);
  const stream_t writer = m.machine.create_stream(0);
  std::atomic<int> passed{0};
  EXPECT_EQ(m.cu.cuStreamWaitValue64(waiter, word, 5, CU_STREAM_WAIT_VALUE_GEQ), CUDA_SUCCESS);
  m.machine.launch(waiter, [&] { passed = 1; });
  let_run();
  EXPECT_EQ(passed, 0);
  EXPECT_EQ(m.cu.cuStreamWriteValue64(writer, word, 6, 0), CUDA_SUCCESS);
  m.machine.synchronize(waiter);
  EXPECT_EQ(passed, 1);
  m.give_back(word, 2 * mib);
}

}  // namespace
}  // namespace weir::test
