// Events: what they cover, re-recording, context events, time.
#include <atomic>

#include "driver/fixture.hpp"

namespace weir::test {
namespace {

TEST(sim_event, an_event_covers_what_was_queued_before_it) {
  driver_machine m;
  const stream_t s = m.machine.create_stream(0);
  const CUevent e = m.event();
  EXPECT_EQ(m.cu.cuEventQuery(e), CUDA_SUCCESS);  // never recorded
  sim::gate g = m.machine.hold(s);
  EXPECT_EQ(m.cu.cuEventRecord(e, s), CUDA_SUCCESS);
  const sim::gate later = m.machine.hold(s);
  EXPECT_EQ(m.cu.cuEventQuery(e), CUDA_ERROR_NOT_READY);
  g.open();
  EXPECT_EQ(m.cu.cuEventSynchronize(e), CUDA_SUCCESS);
  EXPECT_EQ(m.cu.cuEventQuery(e), CUDA_SUCCESS);
  EXPECT_FALSE(m.machine.idle(s));
  EXPECT_EQ(m.cu.cuEventDestroy(e), CUDA_SUCCESS);
}

TEST(sim_event, recording_again_replaces_but_keeps_waits_made_before) {
  driver_machine m;
  const stream_t first = m.machine.create_stream(0);
  const stream_t second = m.machine.create_stream(0);
  const stream_t waiter = m.machine.create_stream(0);
  const CUevent e = m.event();
  sim::gate g = m.machine.hold(first);
  m.cu.cuEventRecord(e, first);
  EXPECT_EQ(m.cu.cuStreamWaitEvent(waiter, e, 0), CUDA_SUCCESS);
  std::atomic<int> passed{0};
  m.machine.launch(waiter, [&] { passed = 1; });
  m.cu.cuEventRecord(e, second);
  EXPECT_EQ(m.cu.cuEventQuery(e), CUDA_SUCCESS);  // of the second stream, which is idle
  let_run();
  EXPECT_EQ(passed, 0);
  g.open();
  m.machine.synchronize(waiter);
  EXPECT_EQ(passed, 1);
}

TEST(sim_event, an_event_outlives_its_stream) {
  driver_machine m;
  const stream_t s = m.machine.create_stream(0);
  const CUevent e = m.event();
  sim::gate g = m.machine.hold(s);
  m.cu.cuEventRecord(e, s);
  m.machine.destroy_stream(s);
  EXPECT_EQ(m.cu.cuEventQuery(e), CUDA_ERROR_NOT_READY);
  g.open();
  EXPECT_EQ(m.cu.cuEventSynchronize(e), CUDA_SUCCESS);
}

TEST(sim_event, an_event_may_be_destroyed_while_others_wait_for_it) {
  driver_machine m;
  const stream_t s = m.machine.create_stream(0);
  const stream_t waiter = m.machine.create_stream(0);
  const CUevent e = m.event();
  sim::gate g = m.machine.hold(s);
  m.cu.cuEventRecord(e, s);
  m.cu.cuStreamWaitEvent(waiter, e, 0);
  EXPECT_EQ(m.cu.cuEventDestroy(e), CUDA_SUCCESS);
  EXPECT_FALSE(m.machine.idle(waiter));
  g.open();
  m.machine.synchronize(waiter);
  EXPECT_EQ(m.machine.live().events, 0U);
}

TEST(sim_event, a_context_event_covers_destroyed_streams_too) {
  driver_machine m;
  CUcontext context = nullptr;
  m.cu.cuCtxGetCurrent(&context);
  const stream_t gone = m.machine.create_stream(0);
  const stream_t alive = m.machine.create_stream(0);
  const stream_t other_device = m.machine.create_stream(1);
  const CUevent e = m.event();
  EXPECT_EQ(m.cu.cuCtxRecordEvent(context, e), CUDA_SUCCESS);
  EXPECT_EQ(m.cu.cuEventQuery(e), CUDA_SUCCESS);
  sim::gate first = m.machine.hold(gone);
  sim::gate second = m.machine.hold(alive);
  const sim::gate third = m.machine.hold(other_device);
  m.machine.destroy_stream(gone);
  EXPECT_EQ(m.cu.cuCtxRecordEvent(context, e), CUDA_SUCCESS);
  second.open();
  let_run();
  EXPECT_EQ(m.cu.cuEventQuery(e), CUDA_ERROR_NOT_READY);
  const stream_t waiter = m.machine.create_stream(0);
  EXPECT_EQ(m.cu.cuStreamWaitEvent(waiter, e, 0), CUDA_SUCCESS);
  EXPECT_FALSE(m.machine.idle(waiter));
  first.open();
  m.machine.synchronize(waiter);
  EXPECT_EQ(m.cu.cuEventQuery(e), CUDA_SUCCESS);
}

TEST(sim_event, many_short_lived_streams_are_forgotten_when_they_are_done) {
  driver_machine m;
  CUcontext context = nullptr;
  m.cu.cuCtxGetCurrent(&context);
  const CUevent e = m.event();
  for (int i = 0; i < 3000; ++i) {
    const stream_t s = m.machine.create_stream(0);
    m.machine.launch(s, [] {});
    m.machine.destroy_stream(s);
  }
  EXPECT_EQ(m.cu.cuCtxRecordEvent(context, e), CUDA_SUCCESS);
  EXPECT_EQ(m.cu.cuEventSynchronize(e), CUDA_SUCCESS);
  EXPECT_EQ(m.machine.live().streams, 0U);
}

TEST(sim_event, time_between_events) {
  driver_machine m;
  const stream_t s = m.machine.create_stream(0);
  const CUevent first = m.event(CU_EVENT_DEFAULT);
  const CUevent last = m.event(CU_EVENT_DEFAULT);
  const CUevent untimed = m.event();
  float ms = 0;
  m.cu.cuEventRecord(first, s);
  m.machine.launch(s, [] { std::this_thread::sleep_for(std::chrono::milliseconds(5)); });
  m.cu.cuEventRecord(last, s);
  m.cu.cuEventRecord(untimed, s);
  EXPECT_EQ(m.cu.cuEventElapsedTime(&ms, first, untimed), CUDA_ERROR_INVALID_HANDLE);
  m.machine.synchronize(s);
  EXPECT_EQ(m.cu.cuEventElapsedTime(&ms, first, last), CUDA_SUCCESS);
  EXPECT_GE(ms, 4.9F);
}

TEST(sim_event, events_are_recorded_on_streams_of_their_own_device) {
  driver_machine m;
  const stream_t other = m.machine.create_stream(1);
  const CUevent e = m.event();
  EXPECT_EQ(m.cu.cuEventRecord(e, other), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(m.cu.cuStreamWaitEvent(other, e, 0), CUDA_SUCCESS);  // waiting is fine
}

TEST(sim_event, dead_events_are_found) {
  sim::machine_config config;
  config.reuse_handles = false;
  driver_machine m(config);
  const CUevent e = m.event();
  EXPECT_EQ(m.cu.cuEventDestroy(e), CUDA_SUCCESS);
  EXPECT_EQ(m.cu.cuEventQuery(e), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(m.cu.cuEventDestroy(e), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(m.machine.faults().size(), 2U);
}

}  // namespace
}  // namespace weir::test
