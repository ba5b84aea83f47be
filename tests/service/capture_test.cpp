// Captures and Weir: nothing that Weir does spoils one, and what is captured has memory of its own (C7).

#include <gtest/gtest.h>

#include <memory>

#include "weir/simulation.hpp"
#include "weir/weir.hpp"

#include "driver/table.hpp"

namespace {

class capture_test : public ::testing::Test {
 protected:
  capture_test() : machine(std::make_shared<weir::sim::machine>()), service(weir::config{}, machine) {
    machine->set_device(0);
    cu = &machine->table();
  }

  void begin(weir::stream_t s, CUstreamCaptureMode mode) { ASSERT_EQ(cu->cuStreamBeginCapture(s, mode), CUDA_SUCCESS); }
  CUresult end(weir::stream_t s) {
    CUgraph graph = nullptr;
    const CUresult r = cu->cuStreamEndCapture(s, &graph);
    if (graph != nullptr) cu->cuGraphDestroy(graph);
    return r;
  }

  std::shared_ptr<weir::sim::machine> machine;
  weir::service service;
  const weir::driver::table* cu = nullptr;
};

constexpr CUstreamCaptureMode modes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                         CU_STREAM_CAPTURE_MODE_RELAXED};

TEST_F(capture_test, AskingACapturingStreamForItsIdSpoilsTheCapture) {
  // What the installed driver does (H200, driver 580), and why Weir must not ask.
  for (const CUstreamCaptureMode mode : modes) {
    const weir::stream_t s = machine->create_stream(0);
    begin(s, mode);
    unsigned long long id = 0;
    EXPECT_EQ(cu->cuStreamGetId(s, &id), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT_EQ(end(s), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
}

TEST_F(capture_test, RawStreamCallsInAnUnannouncedCaptureDoNotSpoilIt) {
  for (const CUstreamCaptureMode mode : modes) {
    const weir::stream_t s = machine->create_stream(0);
    void* before = service.allocate(1 << 20, 0, s);
    begin(s, mode);
    void* small = service.allocate(1000, 0, s);
    void* large = service.allocate(64 << 20, 0, s);  // grows during the capture
    service.deallocate(small, s);
    service.deallocate(before, s);
    service.deallocate(large, s);
    EXPECT_EQ(end(s), CUDA_SUCCESS);
    // Once it is over the stream is known as before: the same lane serves it.
    void* after = service.allocate(1000, 0, s);
    weir::block_info block;
    ASSERT_TRUE(service.query(after, block));
    EXPECT_EQ(block.stream, s);
    service.deallocate(after, s);
  }
  EXPECT_EQ(service.check(), "");
}

TEST_F(capture_test, AStreamFirstSeenInACaptureIsServed) {
  const weir::stream_t s = machine->create_stream(0);
  begin(s, CU_STREAM_CAPTURE_MODE_GLOBAL);
  void* block = service.allocate(4096, 0, s);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(end(s), CUDA_SUCCESS);
  service.deallocate(block, s);
  EXPECT_EQ(service.check(), "");
}

TEST_F(capture_test, AnAnnouncedCaptureHasMemoryOfItsOwn) {
  const weir::stream_t s = machine->create_stream(0);
  const weir::stream_t other = machine->create_stream(0);
  weir::lane lane = service.lane(0, s);
  weir::lane other_lane = service.lane(0, other);
  void* ordinary = lane.allocate(4096);
  lane.deallocate(ordinary);
  {
    weir::capture c(service, 0);
    begin(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    void* captured = lane.allocate(4096);
    void* beside = other_lane.allocate(4096);  // does not take part
    EXPECT_NE(captured, ordinary);
    EXPECT_EQ(end(s), CUDA_SUCCESS);
    c.end();
    // Freed, the captured block stays the capture's.
    weir::deallocate(captured);
    void* again = lane.allocate(4096);
    EXPECT_EQ(again, ordinary);
    lane.deallocate(again);
    other_lane.deallocate(beside);
  }
  EXPECT_EQ(service.check(), "");
}

TEST_F(capture_test, OtherThreadsWorkAndTrimsLeaveACaptureAlone) {
  const weir::stream_t s = machine->create_stream(0);
  weir::lane beside = service.lane(0, machine->create_stream(0));
  begin(s, CU_STREAM_CAPTURE_MODE_GLOBAL);
  for (int i = 0; i < 20; ++i) {
    void* block = beside.allocate(std::size_t{1} << (10 + i % 15));
    beside.deallocate(block);
    service.trim();
    service.collect();
  }
  EXPECT_EQ(end(s), CUDA_SUCCESS);
  EXPECT_EQ(service.check(), "");
}

}  // namespace
