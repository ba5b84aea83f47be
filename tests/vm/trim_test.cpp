#include "rig.hpp"

namespace weir::vm {
namespace {

using namespace testing;

TEST(trim, gives_everything_back_when_all_is_free) {  // C8
  rig r;
  const sim::live_counts nothing = r.machine->live();
  lane_rig& l = r.lane();
  const std::uint64_t a = l.allocate(30 * MiB);
  const std::uint64_t b = l.allocate(3 * MiB);
  l.free(a);
  l.free(b);
  EXPECT_EQ(retire_free_chunks(l.lane, 0), 40 * MiB);
  EXPECT_EQ(r.device->reserved(), 0u);
  EXPECT_EQ(r.device->reserved_peak(), 40 * MiB);
  sim::live_counts left = r.machine->live();
  left.streams = 0;
  EXPECT_EQ(left, nothing);
  EXPECT_EQ(r.device->events.alive(), 0u);
  EXPECT_EQ(l.free_pages(), 0u);
  EXPECT_NE(l.allocate(3 * MiB), 0u);
  EXPECT_EQ(r.faults(), "");
}

TEST(trim, keeps_what_is_to_be_kept_and_takes_the_highest_first) {
  rig r;
  lane_rig& l = r.lane();
  std::vector<std::uint64_t> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(l.allocate(10 * MiB));
  for (const std::uint64_t p : blocks) l.free(p);
  EXPECT_EQ(retire_free_chunks(l.lane, 35 * MiB), 50 * MiB);
  EXPECT_EQ(r.device->reserved(), 30 * MiB);
  EXPECT_EQ(l.lane.heap->pages.longest_free(), 30 * pages_of_MiB);
  EXPECT_EQ(l.allocate(30 * MiB), blocks[0]);
}

TEST(trim, a_chunk_with_a_live_page_or_a_pin_stays) {
  rig r;
  lane_rig& l = r.lane();
  const std::uint64_t a = l.allocate(10 * MiB);
  const std::uint64_t b = l.allocate(1 * MiB);
  const std::uint64_t c = l.allocate(10 * MiB);  // 9 MiB beside b, the last in a chunk of its own
  l.free(a);
  l.free(c);
  chunk& first = l.lane.memory.chunk_at(0);
  ASSERT_TRUE(first.pin());
  EXPECT_EQ(retire_free_chunks(l.lane, 0), 10 * MiB);  // the chunk that only c was in
  EXPECT_TRUE(r.machine->accessible(0, reinterpret_cast<void*>(a), 10 * MiB));
  EXPECT_TRUE(r.machine->accessible(0, reinterpret_cast<void*>(b), MiB));
  first.unpin();
  EXPECT_EQ(retire_free_chunks(l.lane, 0), 10 * MiB);
  EXPECT_FALSE(r.machine->accessible(0, reinterpret_cast<void*>(a), 1));
  l.free(b);
  retire_free_chunks(l.lane, 0);
  EXPECT_EQ(r.device->reserved(), 0u);
}

TEST(trim, waits_for_the_lanes_queued_work) {
  rig r;
  const CUstream s = r.machine->create_stream(0);
  lane_rig& l = r.lane(s);
  const std::uint64_t a = l.allocate(10 * MiB);
  sim::gate gate = r.machine->hold(s);
  r.machine->fill(s, reinterpret_cast<void*>(a), 7, 10 * MiB);
  l.free(a);
  EXPECT_EQ(retire_free_chunks(l.lane, 0), 0u);
  EXPECT_EQ(retiring_bytes(*r.device), 10 * MiB);
  EXPECT_EQ(r.device->reserved(), 10 * MiB);
  EXPECT_EQ(finish_retiring(*r.device), 0u);
  gate.open();
  r.machine->synchronize(s);
  EXPECT_EQ(finish_retiring(*r.device), 10 * MiB);
  EXPECT_EQ(retiring_bytes(*r.device), 0u);
  EXPECT_EQ(r.machine->live().events, 0u);
  EXPECT_EQ(r.machine->live().reservations, 0u);
  EXPECT_EQ(r.faults(), "");
}

TEST(trim, growth_takes_retiring_chunks_back_without_a_driver_call) {
  rig r;
  const CUstream s = r.machine->create_stream(0);
  lane_rig& l = r.lane(s);
  const std::uint64_t a = l.allocate(10 * MiB);
  sim::gate gate = r.machine->hold(s);
  l.free(a);
  ASSERT_EQ(retire_free_chunks(l.lane, 0), 0u);
  r.machine->reset_calls();
  EXPECT_EQ(l.allocate(10 * MiB), a);
  EXPECT_TRUE(r.machine->calls().empty());
  EXPECT_EQ(retiring_bytes(*r.device), 0u);
  gate.open();
}

TEST(trim, growth_finishes_what_others_retired_before_it_fails) {
  settings s;
  s.limit = 20 * MiB;
  rig r({}, s);
  const CUstream busy = r.machine->create_stream(0);
  lane_rig& donor = r.lane(busy);
  lane_rig& other = r.lane();
  const std::uint64_t a = donor.allocate(20 * MiB);
  sim::gate gate = r.machine->hold(busy);
  donor.free(a);
  ASSERT_EQ(retire_free_chunks(donor.lane, 0), 0u);
  EXPECT_EQ(other.allocate(20 * MiB), 0u);
  gate.open();
  r.machine->synchronize(busy);
  EXPECT_NE(other.allocate(20 * MiB), 0u);
  EXPECT_EQ(r.device->reserved(), 20 * MiB);
}

TEST(trim, does_nothing_while_a_hold_lives) {
  rig r;
  lane_rig& l = r.lane();
  l.free(l.allocate(10 * MiB));
  ++r.holds;
  r.machine->reset_calls();
  EXPECT_EQ(retire_free_chunks(l.lane, 0), 0u);
  EXPECT_EQ(finish_retiring(*r.device), 0u);
  EXPECT_TRUE(r.machine->calls().empty());
  --r.holds;
  EXPECT_EQ(retire_free_chunks(l.lane, 0), 10 * MiB);
}

TEST(trim, a_stream_that_may_not_be_touched_is_fenced_by_the_context) {
  rig r;
  const CUstream s = r.machine->create_stream(0);
  lane_rig& l = r.lane(s);
  const std::uint64_t a = l.allocate(10 * MiB);
  sim::gate gate = r.machine->hold(s);
  l.free(a);
  l.lane.handles = 0;
  r.machine->destroy_stream(s);
  EXPECT_EQ(retire_free_chunks(l.lane, 0), 0u);
  EXPECT_EQ(calls(r, "cuCtxRecordEvent"), 1u);
  EXPECT_EQ(calls(r, "cuEventRecord"), 0u);
  gate.open();
  r.machine->synchronize(0);
  EXPECT_EQ(finish_retiring(*r.device), 10 * MiB);
  EXPECT_EQ(r.faults(), "");
}

TEST(trim, without_any_fence_the_memory_stays_until_quiesced) {
  settings s;
  s.context_fence = false;
  rig r({}, s);
  lane_rig& l = r.lane();
  l.free(l.allocate(10 * MiB));
  l.lane.retired = true;
  EXPECT_EQ(retire_free_chunks(l.lane, 0), 0u);
  EXPECT_EQ(l.free_pages(), 10 * pages_of_MiB);
  // Named by the caller, the stream may be touched.
  EXPECT_EQ(retire_free_chunks(l.lane, 0, &l.lane), 10 * MiB);
}

TEST(trim, no_context_fence_while_a_capture_is_announced_or_the_driver_has_none) {
  for (const bool old_driver : {false, true}) {
    sim::machine_config config;
    config.context_events = !old_driver;
    rig r(config);
    lane_rig& l = r.lane();
    l.free(l.allocate(10 * MiB));
    l.lane.handles = 0;
    r.device->announced_captures = old_driver ? 0 : 1;
    EXPECT_EQ(retire_free_chunks(l.lane, 0), 0u);
    EXPECT_EQ(calls(r, "cuCtxRecordEvent"), 0u);
    EXPECT_EQ(l.free_pages(), 10 * pages_of_MiB);
  }
}

TEST(trim, a_capturing_stream_is_left_alone) {  // C7
  rig r;
  const CUstream s = r.machine->create_stream(0);
  lane_rig& l = r.lane(s);
  l.free(l.allocate(10 * MiB));
  const driver::table& t = r.machine->table();
  r.machine->set_device(0);
  ASSERT_EQ(t.cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  EXPECT_EQ(retire_free_chunks(l.lane, 0), 0u);
  EXPECT_EQ(l.free_pages(), 10 * pages_of_MiB);
  EXPECT_TRUE(r.device->capture_seen);
  CUgraph graph = nullptr;
  ASSERT_EQ(t.cuStreamEndCapture(s, &graph), CUDA_SUCCESS);
  ASSERT_NE(graph, nullptr);
  t.cuGraphDestroy(graph);
  EXPECT_EQ(retire_free_chunks(l.lane, 0), 10 * MiB);
}

TEST(trim, growth_and_trim_are_legal_under_another_streams_capture) {  // C7
  rig r;
  const CUstream s = r.machine->create_stream(0);
  lane_rig& l = r.lane();
  const driver::table& t = r.machine->table();
  r.machine->set_device(0);
  ASSERT_EQ(t.cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  const std::uint64_t a = l.allocate(10 * MiB);
  ASSERT_NE(a, 0u);
  l.free(a);
  EXPECT_EQ(retire_free_chunks(l.lane, 0), 10 * MiB);
  CUgraph graph = nullptr;
  EXPECT_EQ(t.cuStreamEndCapture(s, &graph), CUDA_SUCCESS);
  EXPECT_NE(graph, nullptr);
  t.cuGraphDestroy(graph);
}

TEST(trim, quiesced_makes_every_fence_count_as_reached) {
  rig r;
  const CUstream s = r.machine->create_stream(0);
  lane_rig& l = r.lane(s);
  const std::uint64_t a = l.allocate(10 * MiB);
  sim::gate gate = r.machine->hold(s);
  l.free(a);
  ASSERT_EQ(retire_free_chunks(l.lane, 0), 0u);
  quiesced(*r.device);
  EXPECT_EQ(finish_retiring(*r.device), 10 * MiB);
  gate.open();
}

TEST(trim, a_lane_that_holds_nothing_leaves_the_devices_list) {
  rig r;
  lane_rig& l = r.lane();
  const std::uint64_t a = l.allocate(10 * MiB);
  EXPECT_FALSE(release_lane(l.lane));
  l.free(a);
  retire_free_chunks(l.lane, 0);
  EXPECT_TRUE(release_lane(l.lane));
  int listed = 0;
  r.device->lanes.each([&](lane&) { ++listed; });
  EXPECT_EQ(listed, 0);
  EXPECT_NE(l.allocate(10 * MiB), 0u);
}

}  // namespace
}  // namespace weir::vm
