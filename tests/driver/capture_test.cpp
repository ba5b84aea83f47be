// Captures: what they forbid in each mode, joining, and graphs that replay.
#include <atomic>
#include <ostream>

#include "driver/fixture.hpp"

namespace weir::test {
namespace {

CUstreamCaptureStatus status_of(const driver_machine& m, CUstream s) {
  CUstreamCaptureStatus status{};
  EXPECT_EQ(m.cu.cuStreamIsCapturing(s, &status), CUDA_SUCCESS);
  return status;
}

// Ends the capture: what it gave, the graph destroyed.
CUresult end(const driver_machine& m, CUstream s) {
  CUgraph graph = nullptr;
  const CUresult result = m.cu.cuStreamEndCapture(s, &graph);
  EXPECT_EQ(graph != nullptr, result == CUDA_SUCCESS);
  if (graph != nullptr) {
    EXPECT_EQ(m.cu.cuGraphDestroy(graph), CUDA_SUCCESS);
  }
  return result;
}

TEST(sim_capture, captured_work_runs_when_the_graph_is_launched) {
  driver_machine m;
  const stream_t s = m.machine.create_stream(0);
  const CUdeviceptr at = m.memory(2 * mib);
  std::atomic<int> runs{0};
  EXPECT_EQ(m.cu.cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  EXPECT_EQ(status_of(m, s), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  m.machine.launch(s, [&] { ++runs; });
  EXPECT_EQ(m.cu.cuMemsetD8Async(at, 3, 100, s), CUDA_SUCCESS);
  EXPECT_EQ(m.cu.cuMemcpyDtoDAsync(at + 4096, at, 100, s), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  EXPECT_EQ(m.cu.cuStreamEndCapture(s, &graph), CUDA_SUCCESS);
  EXPECT_EQ(status_of(m, s), CU_STREAM_CAPTURE_STATUS_NONE);
  m.machine.synchronize(s);
  EXPECT_EQ(runs, 0);
  CUgraphExec exec = nullptr;
  EXPECT_EQ(m.cu.cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
  EXPECT_EQ(m.cu.cuGraphDestroy(graph), CUDA_SUCCESS);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(m.cu.cuGraphLaunch(exec, s), CUDA_SUCCESS);
  m.machine.synchronize(s);
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(static_cast<unsigned char*>(m.machine.view(0, pointer(at + 4096), 100))[99], 3);
  EXPECT_EQ(m.cu.cuGraphExecDestroy(exec), CUDA_SUCCESS);
  EXPECT_EQ(m.machine.live().graphs, 0U);
  m.give_back(at, 2 * mib);
}

TEST(sim_capture, one_executable_graph_runs_once_at_a_time) {
  driver_machine m;
  const stream_t a = m.machine.create_stream(0);
  const stream_t b = m.machine.create_stream(0);
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  m.cu.cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_RELAXED);
  m.machine.launch(a, [&] {
    most = std::max(most.load(), ++inside);
    let_run();
    --inside;
  });
  CUgraph graph = nullptr;
  m.cu.cuStreamEndCapture(a, &graph);
  CUgraphExec exec = nullptr;
  m.cu.cuGraphInstantiateWithFlags(&exec, graph, 0);
  m.cu.cuGraphLaunch(exec, a);
  m.cu.cuGraphLaunch(exec, b);
  m.machine.synchronize(b);
  m.machine.synchronize(a);
  EXPECT_EQ(most, 1);
}

TEST(sim_capture, streams_join_by_waiting_for_a_captured_event) {
  driver_machine m;
  const stream_t origin = m.machine.create_stream(0);
  const stream_t fork = m.machine.create_stream(0);
  const CUevent out = m.event();
  const CUevent back = m.event();
  std::atomic<int> order{0};
  m.cu.cuStreamBeginCapture(origin, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  m.machine.launch(origin, [&] { order = order * 10 + 1; });
  EXPECT_EQ(m.cu.cuEventRecord(out, origin), CUDA_SUCCESS);
  EXPECT_EQ(m.cu.cuStreamWaitEvent(fork, out, 0), CUDA_SUCCESS);
  EXPECT_EQ(status_of(m, fork), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  cuuint64_t id_origin = 0;
  cuuint64_t id_fork = 0;
  CUstreamCaptureStatus status{};
  m.cu.cuStreamGetCaptureInfo(origin, &status, &id_origin, nullptr, nullptr, nullptr, nullptr);
  m.cu.cuStreamGetCaptureInfo(fork, &status, &id_fork, nullptr, nullptr, nullptr, nullptr);
  EXPECT_EQ(id_origin, id_fork);
  m.machine.launch(fork, [&] { order = order * 10 + 2; });
  EXPECT_EQ(m.cu.cuEventRecord(back, fork), CUDA_SUCCESS);
  EXPECT_EQ(m.cu.cuStreamWaitEvent(origin, back, 0), CUDA_SUCCESS);
  m.machine.launch(origin, [&] { order = order * 10 + 3; });
  CUgraph graph = nullptr;
  EXPECT_EQ(m.cu.cuStreamEndCapture(origin, &graph), CUDA_SUCCESS);
  EXPECT_EQ(status_of(m, fork), CU_STREAM_CAPTURE_STATUS_NONE);
  CUgraphExec exec = nullptr;
  m.cu.cuGraphInstantiateWithFlags(&exec, graph, 0);
  m.cu.cuGraphLaunch(exec, fork);
  m.machine.synchronize(fork);
  EXPECT_EQ(order, 123);
}

TEST(sim_capture, work_that_never_joins_back_spoils_the_capture) {
  driver_machine m;
  const stream_t origin = m.machine.create_stream(0);
  const stream_t fork = m.machine.create_stream(0);
  const CUevent out = m.event();
  m.cu.cuStreamBeginCapture(origin, CU_STREAM_CAPTURE_MODE_RELAXED);
  m.cu.cuEventRecord(out, origin);
  m.cu.cuStreamWaitEvent(fork, out, 0);
  m.machine.launch(fork, [] {});
  EXPECT_EQ(end(m, origin), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  EXPECT_EQ(status_of(m, fork), CU_STREAM_CAPTURE_STATUS_NONE);
}

TEST(sim_capture, querying_the_capturing_stream_or_its_event_spoils_it) {
  driver_machine m;
  const stream_t s = m.machine.create_stream(0);
  const CUevent e = m.event();
  m.cu.cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED);
  EXPECT_EQ(m.cu.cuStreamQuery(s), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(status_of(m, s), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  EXPECT_EQ(m.cu.cuMemsetD8Async(0, 0, 1, s), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(end(m, s), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

  m.cu.cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED);
  EXPECT_EQ(m.cu.cuStreamSynchronize(s), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(end(m, s), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  m.cu.cuThreadExchangeStreamCaptureMode(&mode);
  m.cu.cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED);
  m.cu.cuEventRecord(e, s);
  EXPECT_EQ(m.cu.cuEventQuery(e), CUDA_ERROR_CAPTURED_EVENT);
  EXPECT_EQ(end(m, s), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  m.cu.cuThreadExchangeStreamCaptureMode(&mode);
}

// What a cuEventQuery of an unrelated event does to a capture of `mode`, begun by this thread or another one.
struct unsafe_case {
  CUstreamCaptureMode capture;
  CUstreamCaptureMode thread;
  bool same_thread;
  bool allowed;
  friend std::ostream& operator<<(std::ostream& out, const unsafe_case& c) {
    return out << "capture mode " << c.capture << ", thread mode " << c.thread
               << (c.same_thread ? ", same thread" : ", another thread");
  }
};

class sim_capture_unsafe : public testing::TestWithParam<unsafe_case> {};

TEST_P(sim_capture_unsafe, event_query_follows_the_measured_rules) {
  const unsafe_case c = GetParam();
  driver_machine m;
  const stream_t s = m.machine.create_stream(0);
  const CUevent e = m.event();
  EXPECT_EQ(m.cu.cuStreamBeginCapture(s, c.capture), CUDA_SUCCESS);
  CUresult query = CUDA_SUCCESS;
  auto ask = [&] {
    m.machine.set_device(0);
    CUstreamCaptureMode mode = c.thread;
    m.cu.cuThreadExchangeStreamCaptureMode(&mode);
    query = m.cu.cuEventQuery(e);
    m.cu.cuThreadExchangeStreamCaptureMode(&mode);
  };
  if (c.same_thread) {
    ask();
  } else {
    std::thread(ask).join();
  }
  EXPECT_EQ(query, c.allowed ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(end(m, s), c.allowed ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

constexpr auto global = CU_STREAM_CAPTURE_MODE_GLOBAL;
constexpr auto local = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
constexpr auto relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
INSTANTIATE_TEST_SUITE_P(
    modes, sim_capture_unsafe,
    testing::Values(unsafe_case{global, global, true, false}, unsafe_case{local, global, true, false},
                    unsafe_case{relaxed, global, true, true}, unsafe_case{global, relaxed, true, true},
                    unsafe_case{local, relaxed, true, true}, unsafe_case{global, global, false, false},
                    unsafe_case{local, global, false, true}, unsafe_case{relaxed, global, false, true},
                    unsafe_case{global, local, false, true}, unsafe_case{global, relaxed, false, true}));

TEST(sim_capture, memory_calls_are_legal_in_every_mode) {
  for (const auto mode : {global, local, relaxed}) {
    driver_machine m;
    const stream_t s = m.machine.create_stream(0);
    const stream_t other = m.machine.create_stream(0);
    const CUevent e = m.event();
    m.cu.cuStreamBeginCapture(s, mode);
    const CUdeviceptr at = m.memory(2 * mib);
    EXPECT_EQ(m.cu.cuEventRecord(e, other), CUDA_SUCCESS);
    m.give_back(at, 2 * mib);
    EXPECT_EQ(end(m, s), CUDA_SUCCESS);
  }
}

TEST(sim_capture, plain_allocation_is_unsafe) {
  driver_machine m;
  const stream_t s = m.machine.create_stream(0);
  CUdeviceptr at = 0;
  m.cu.cuStreamBeginCapture(s, global);
  EXPECT_EQ(m.cu.cuMemAlloc(&at, 100), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(end(m, s), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(m.machine.live().allocations, 0U);
}

TEST(sim_capture, a_context_event_spoils_every_capture_of_its_context) {
  for (const auto mode : {global, local, relaxed}) {
    driver_machine m;
    CUcontext context = nullptr;
    m.cu.cuCtxGetCurrent(&context);
    const stream_t s = m.machine.create_stream(0);
    const stream_t elsewhere = m.machine.create_stream(1);
    const CUevent e = m.event();
    m.cu.cuStreamBeginCapture(s, mode);
    m.cu.cuStreamBeginCapture(elsewhere, mode);
    CUstreamCaptureMode mine = relaxed;
    m.cu.cuThreadExchangeStreamCaptureMode(&mine);
    EXPECT_EQ(m.cu.cuCtxRecordEvent(context, e), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT_EQ(end(m, s), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(end(m, elsewhere), CUDA_SUCCESS);  // of another context
    EXPECT_EQ(m.cu.cuCtxRecordEvent(context, e), CUDA_SUCCESS);
  }
}

TEST(sim_capture, the_legacy_stream_breaks_captures_of_blocking_streams) {
  driver_machine m;
  const stream_t blocking = m.machine.create_stream(0, true);
  const stream_t free = m.machine.create_stream(0);
  const CUevent e = m.event();
  m.cu.cuStreamBeginCapture(free, relaxed);
  EXPECT_EQ(m.cu.cuEventRecord(e, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(end(m, free), CUDA_SUCCESS);
  m.cu.cuStreamBeginCapture(blocking, relaxed);
  CUstreamCaptureStatus status{};
  EXPECT_EQ(m.cu.cuStreamIsCapturing(nullptr, &status), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  EXPECT_EQ(m.cu.cuEventRecord(e, nullptr), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  EXPECT_EQ(end(m, blocking), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(m.cu.cuStreamBeginCapture(nullptr, relaxed), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

TEST(sim_capture, nothing_outside_the_capture_may_be_waited_for) {
  driver_machine m;
  const stream_t s = m.machine.create_stream(0);
  const stream_t other = m.machine.create_stream(0);
  const CUevent e = m.event();
  sim::gate g = m.machine.hold(other);
  m.cu.cuEventRecord(e, other);
  m.cu.cuStreamBeginCapture(s, relaxed);
  EXPECT_EQ(m.cu.cuStreamWaitEvent(s, e, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  EXPECT_EQ(end(m, s), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  g.open();
}

TEST(sim_capture, only_the_beginner_ends_a_capture) {
  driver_machine m;
  const stream_t s = m.machine.create_stream(0);
  const stream_t fork = m.machine.create_stream(0);
  const CUevent e = m.event();
  m.cu.cuStreamBeginCapture(s, global);
  CUresult elsewhere = CUDA_SUCCESS;
  std::thread([&] {
    m.machine.set_device(0);
    CUgraph graph = nullptr;
    elsewhere = m.cu.cuStreamEndCapture(s, &graph);
  }).join();
  EXPECT_EQ(elsewhere, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  m.cu.cuEventRecord(e, s);
  m.cu.cuStreamWaitEvent(fork, e, 0);
  EXPECT_EQ(end(m, fork), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  EXPECT_EQ(end(m, s), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

}  // namespace
}  // namespace weir::test
