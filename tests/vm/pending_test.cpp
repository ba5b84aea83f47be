#include "heap/state.hpp"
#include "rig.hpp"

namespace weir::vm {
namespace {

using namespace testing;
using namespace std::chrono_literals;

heap::state_byte state_of(std::uint64_t block) {
  heap::block_place at;
  if (heap::lane_heap::find(block, at)) return at.state;
  return heap::find_slot(block)->states[heap::granule_in_slot(block)].load();
}
void set_pending(std::uint64_t block) {
  heap::find_slot(block)->states[heap::granule_in_slot(block)].store(heap::code_pending);
}

/// Frees a block in another lane's order, as deallocate(p, lane) does.
bool free_in(lane_rig& l, std::uint64_t block) {
  const bool used = state_of(block) == (heap::code_used | heap::live_bit);
  set_pending(block);
  return used ? push_used(l.lane, block) : push_pending(l.lane, block);
}

/// A live block of a size class.
std::uint64_t small(lane_rig& l, std::uint32_t cls) {
  void* out[heap::magazine::capacity] = {};
  if (l.lane.heap->refill(cls, out, 1, true) == 0) {
    const growth_result g = grow(l.lane, heap::classes[cls].pages, 1);
    if (g.what != growth::done) return 0;
    l.lane.heap->refill_from(g.first_page, cls, out, 1);
  }
  const auto block = reinterpret_cast<std::uint64_t>(out[0]);
  heap::find_slot(block)->states[heap::granule_in_slot(block)].store(heap::code_of(cls) | heap::live_bit);
  return block;
}

TEST(pending, a_block_freed_in_an_idle_lane_goes_home_at_the_first_collect) {
  rig r;
  lane_rig& own = r.lane();
  lane_rig& other = r.lane();
  const std::uint64_t run = own.allocate(3 * MiB);
  const std::uint64_t block = small(own, 5);
  ASSERT_TRUE(free_in(other, run));
  ASSERT_TRUE(free_in(other, block));
  EXPECT_EQ(pending(*r.device).blocks, 2u);
  EXPECT_EQ(pending(*r.device).bytes, 3 * MiB + heap::classes[5].bytes);
  EXPECT_EQ(collect(*r.device, nullptr), 3 * MiB + heap::classes[5].bytes);
  EXPECT_EQ(pending(*r.device).blocks, 0u);
  EXPECT_EQ(pending(*r.device).bytes, 0u);
  EXPECT_EQ(state_of(block), heap::code_of(5));
  EXPECT_EQ(own.allocate(3 * MiB), run);
  EXPECT_STREQ(own.lane.heap->fault(), nullptr);
  EXPECT_EQ(calls(r, "cuEventRecord"), 1u);  // one fence for both
}

TEST(pending, pushing_calls_no_driver) {  // C4
  rig r;
  lane_rig& own = r.lane();
  lane_rig& other = r.lane();
  const std::uint64_t a = own.allocate(3 * MiB);
  const std::uint64_t b = own.allocate(3 * MiB);
  ASSERT_EQ(record_use(*r.device, b, other.lane.stream), CUDA_SUCCESS);
  r.machine->reset_calls();
  EXPECT_TRUE(free_in(other, a));
  EXPECT_TRUE(free_in(other, b));
  EXPECT_TRUE(r.machine->calls().empty());
  collect(*r.device, nullptr);
}

TEST(pending, waits_for_the_order_it_was_freed_in) {  // C5
  rig r;
  const CUstream s = r.machine->create_stream(0);
  lane_rig& own = r.lane();
  lane_rig& other = r.lane(s);
  const std::uint64_t a = own.allocate(10 * MiB);
  sim::gate gate = r.machine->hold(s);
  r.machine->fill(s, reinterpret_cast<void*>(a), 3, 10 * MiB);
  free_in(other, a);
  EXPECT_EQ(collect(*r.device, nullptr), 0u);
  EXPECT_EQ(collect(*r.device, nullptr), 0u);
  EXPECT_EQ(state_of(a), heap::code_pending);
  gate.open();
  r.machine->synchronize(s);
  EXPECT_EQ(collect(*r.device, nullptr), 10 * MiB);
}

TEST(pending, a_stuck_stream_hides_nothing_and_asks_little) {  // B15
  rig r;
  const CUstream stuck = r.machine->create_stream(0);
  lane_rig& own = r.lane();
  lane_rig& slow = r.lane(stuck);
  lane_rig& quick = r.lane();
  const std::uint64_t first = own.allocate(2 * MiB);
  std::vector<std::uint64_t> blocks;
  for (int i = 0; i < 40; ++i) blocks.push_back(own.allocate(2 * MiB));
  sim::gate gate = r.machine->hold(stuck);
  free_in(slow, first);
  for (const std::uint64_t p : blocks) {
    free_in(quick, p);
    EXPECT_EQ(collect(*r.device, nullptr), 2 * MiB);
  }
  EXPECT_LE(calls(r, "cuEventQuery"), 2 * blocks.size());
  EXPECT_LE(r.machine->live().events, 3u);
  gate.open();
  r.machine->synchronize(stuck);
  EXPECT_EQ(collect(*r.device, nullptr), 2 * MiB);
}

TEST(pending, few_events_however_many_collects_a_stuck_stream_sees) {  // C13
  rig r;
  const CUstream stuck = r.machine->create_stream(0);
  lane_rig& own = r.lane();
  lane_rig& slow = r.lane(stuck);
  std::vector<std::uint64_t> blocks;
  for (int i = 0; i < 100; ++i) blocks.push_back(own.allocate(2 * MiB));
  sim::gate gate = r.machine->hold(stuck);
  for (const std::uint64_t p : blocks) {
    free_in(slow, p);
    collect(*r.device, nullptr);
  }
  EXPECT_LE(r.machine->live().events, fence_ring::places);
  EXPECT_EQ(pending(*r.device).blocks, 100u);
  gate.open();
  r.machine->synchronize(stuck);
  std::uint64_t freed = 0;
  for (int i = 0; i < 3; ++i) {
    freed += collect(*r.device, nullptr);
    r.machine->synchronize(stuck);
  }
  EXPECT_EQ(freed, 200 * MiB);
  retire_free_chunks(own.lane, 0);
  EXPECT_EQ(r.machine->live().events, 0u);
}

TEST(pending, a_lane_that_may_not_be_touched_leaves_it_stranded) {
  settings s;
  s.context_fence = false;
  rig r({}, s);
  lane_rig& own = r.lane();
  lane_rig& other = r.lane();
  other.lane.handles = 0;
  const std::uint64_t a = own.allocate(2 * MiB);
  free_in(other, a);
  EXPECT_EQ(collect(*r.device, nullptr), 0u);
  EXPECT_EQ(pending(*r.device).stranded, 2 * MiB);
  EXPECT_EQ(wait_pending(*r.device, nullptr, 1, std::chrono::steady_clock::now() + 5ms), 0u);
  EXPECT_EQ(calls(r, "cuEventRecord") + calls(r, "cuCtxRecordEvent"), 0u);
  // The caller names the stream: it may be touched.
  EXPECT_EQ(collect(*r.device, &other.lane), 2 * MiB);
  EXPECT_EQ(pending(*r.device).stranded, 0u);
}

TEST(pending, stranded_memory_is_freed_by_quiesced_or_under_pressure_by_the_context) {
  rig r;
  lane_rig& own = r.lane();
  const CUstream gone = r.machine->create_stream(0);
  lane_rig& other = r.lane(gone);
  const std::uint64_t a = own.allocate(2 * MiB);
  const std::uint64_t b = own.allocate(2 * MiB);
  sim::gate gate = r.machine->hold(gone);
  free_in(other, a);
  other.lane.handles = 0;
  r.machine->destroy_stream(gone);
  EXPECT_EQ(collect(*r.device, nullptr), 0u);
  EXPECT_EQ(wait_pending(*r.device, nullptr, 1, std::chrono::steady_clock::now() + 5ms), 0u);
  EXPECT_EQ(calls(r, "cuCtxRecordEvent"), 1u);
  gate.open();
  EXPECT_EQ(wait_pending(*r.device, nullptr, 1, std::chrono::steady_clock::now() + 5s), 2 * MiB);
  free_in(other, b);
  quiesced(*r.device);
  EXPECT_EQ(collect(*r.device, nullptr), 2 * MiB);
  EXPECT_EQ(r.faults(), "");
}

TEST(pending, wait_ends_when_enough_became_free) {
  rig r;
  const CUstream s = r.machine->create_stream(0);
  lane_rig& own = r.lane();
  lane_rig& other = r.lane(s);
  const std::uint64_t a = own.allocate(4 * MiB);
  sim::gate gate = r.machine->hold(s);
  free_in(other, a);
  std::thread opener([&] {
    std::this_thread::sleep_for(20ms);
    gate.open();
  });
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(wait_pending(*r.device, nullptr, 4 * MiB, start + 60s), 4 * MiB);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 30s);
  opener.join();
}

TEST(pending, a_used_block_waits_for_its_uses) {
  rig r;
  const CUstream one = r.machine->create_stream(0);
  const CUstream two = r.machine->create_stream(0);
  lane_rig& own = r.lane();
  for (const bool small_block : {false, true}) {
    const std::uint64_t p = small_block ? small(own, 9) : own.allocate(2 * MiB);
    const std::uint64_t bytes = small_block ? heap::classes[9].bytes : 2 * MiB;
    sim::gate first = r.machine->hold(one);
    sim::gate second = r.machine->hold(two);
    ASSERT_EQ(record_use(*r.device, p, one), CUDA_SUCCESS);
    ASSERT_EQ(record_use(*r.device, p, two), CUDA_SUCCESS);
    EXPECT_EQ(state_of(p), heap::code_used | heap::live_bit);
    ASSERT_TRUE(free_in(own, p));  // in its own lane's order
    EXPECT_EQ(collect(*r.device, nullptr), 0u);
    first.open();
    r.machine->synchronize(one);
    EXPECT_EQ(collect(*r.device, nullptr), 0u);
    second.open();
    r.machine->synchronize(two);
    EXPECT_EQ(collect(*r.device, nullptr), bytes);
    EXPECT_EQ(state_of(p), small_block ? heap::code_of(9) : heap::code_large);
  }
  EXPECT_STREQ(own.lane.heap->fault(), nullptr);
}

TEST(pending, a_used_block_freed_elsewhere_waits_for_uses_and_for_that_order) {
  rig r;
  const CUstream user = r.machine->create_stream(0);
  const CUstream s = r.machine->create_stream(0);
  lane_rig& own = r.lane();
  lane_rig& other = r.lane(s);
  const std::uint64_t p = own.allocate(2 * MiB);
  sim::gate use = r.machine->hold(user);
  sim::gate order = r.machine->hold(s);
  ASSERT_EQ(record_use(*r.device, p, user), CUDA_SUCCESS);
  free_in(other, p);
  use.open();
  r.machine->synchronize(user);
  EXPECT_EQ(collect(*r.device, nullptr), 0u);
  order.open();
  r.machine->synchronize(s);
  EXPECT_EQ(collect(*r.device, nullptr), 2 * MiB);
}

TEST(pending, a_later_use_of_the_same_stream_takes_the_earlier_ones_event) {
  rig r;
  const CUstream user = r.machine->create_stream(0);
  lane_rig& own = r.lane();
  const std::uint64_t p = own.allocate(2 * MiB);
  for (int i = 0; i < 50; ++i) ASSERT_EQ(record_use(*r.device, p, user), CUDA_SUCCESS);
  EXPECT_EQ(r.machine->live().events, 1u);
  sim::gate gate = r.machine->hold(user);
  ASSERT_EQ(record_use(*r.device, p, user), CUDA_SUCCESS);
  free_in(own, p);
  EXPECT_EQ(collect(*r.device, nullptr), 0u);  // the last use counts
  gate.open();
  r.machine->synchronize(user);
  EXPECT_EQ(collect(*r.device, nullptr), 2 * MiB);
}

TEST(pending, a_use_of_the_blocks_own_stream_needs_no_record) {
  rig r;
  lane_rig& own = r.lane();
  const std::uint64_t p = own.allocate(2 * MiB);
  EXPECT_EQ(record_use(*r.device, p, own.lane.stream), CUDA_SUCCESS);
  EXPECT_EQ(state_of(p), heap::code_large | heap::live_bit);
  EXPECT_EQ(r.machine->live().events, 0u);
}

TEST(pending, uses_on_a_capturing_stream_and_of_foreign_addresses_are_refused) {
  rig r;
  lane_rig& own = r.lane();
  const CUstream s = r.machine->create_stream(0);
  const std::uint64_t p = own.allocate(2 * MiB);
  r.machine->set_device(0);
  const driver::table& t = r.machine->table();
  ASSERT_EQ(t.cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  EXPECT_EQ(record_use(*r.device, p, s), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(state_of(p), heap::code_large | heap::live_bit);
  CUgraph graph = nullptr;
  EXPECT_EQ(t.cuStreamEndCapture(s, &graph), CUDA_SUCCESS);
  t.cuGraphDestroy(graph);
  EXPECT_EQ(record_use(*r.device, 0x1234500, s), CUDA_ERROR_INVALID_VALUE);
}

TEST(pending, a_capturing_lane_is_not_recorded_on) {  // C7
  rig r;
  lane_rig& own = r.lane();
  const CUstream s = r.machine->create_stream(0);
  lane_rig& other = r.lane(s);
  const std::uint64_t p = own.allocate(2 * MiB);
  r.machine->set_device(0);
  const driver::table& t = r.machine->table();
  ASSERT_EQ(t.cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  free_in(other, p);
  EXPECT_EQ(collect(*r.device, nullptr), 0u);
  EXPECT_EQ(wait_pending(*r.device, nullptr, 1, std::chrono::steady_clock::now() + 3ms), 0u);
  EXPECT_EQ(calls(r, "cuEventRecord") + calls(r, "cuCtxRecordEvent"), 0u);
  CUgraph graph = nullptr;
  EXPECT_EQ(t.cuStreamEndCapture(s, &graph), CUDA_SUCCESS);
  t.cuGraphDestroy(graph);
  EXPECT_EQ(collect(*r.device, nullptr), 2 * MiB);
}

TEST(pending, many_used_blocks_of_one_stuck_stream_cost_few_queries) {
  rig r;
  const CUstream stuck = r.machine->create_stream(0);
  const CUstream quick = r.machine->create_stream(0);
  lane_rig& own = r.lane();
  std::vector<std::uint64_t> slow_blocks;
  std::vector<std::uint64_t> quick_blocks;
  for (std::size_t i = 0; i < 200; ++i) {
    slow_blocks.push_back(own.allocate(2 * MiB));
    quick_blocks.push_back(own.allocate(2 * MiB));
  }
  sim::gate gate = r.machine->hold(stuck);
  for (std::size_t i = 0; i < 200; ++i) {
    ASSERT_EQ(record_use(*r.device, slow_blocks[i], stuck), CUDA_SUCCESS);
    ASSERT_EQ(record_use(*r.device, quick_blocks[i], quick), CUDA_SUCCESS);
  }
  for (std::size_t i = 0; i < 200; ++i) {
    free_in(own, quick_blocks[i]);
    free_in(own, slow_blocks[i]);
  }
  r.machine->synchronize(quick);
  r.machine->reset_calls();
  EXPECT_EQ(collect(*r.device, nullptr), 400 * MiB);
  EXPECT_LE(calls(r, "cuEventQuery"), 30u);  // at most four a stream and batch of 64
  gate.open();
  r.machine->synchronize(stuck);
  r.machine->reset_calls();
  EXPECT_EQ(collect(*r.device, nullptr), 400 * MiB);
  EXPECT_LE(calls(r, "cuEventQuery"), 8u);
  EXPECT_EQ(pending(*r.device).blocks, 0u);
}

TEST(pending, quiesced_covers_recorded_uses) {
  rig r;
  const CUstream user = r.machine->create_stream(0);
  lane_rig& own = r.lane();
  const std::uint64_t p = own.allocate(2 * MiB);
  sim::gate gate = r.machine->hold(user);
  ASSERT_EQ(record_use(*r.device, p, user), CUDA_SUCCESS);
  free_in(own, p);
  quiesced(*r.device);
  EXPECT_EQ(collect(*r.device, nullptr), 2 * MiB);
  gate.open();
}

TEST(pending, a_block_used_by_another_device) {
  rig r;
  vm::device second(r.machine->table(), 1, {});
  const CUstream far = r.machine->create_stream(1);
  lane_rig& own = r.lane();
  const std::uint64_t p = own.allocate(2 * MiB);
  sim::gate gate = r.machine->hold(far);
  ASSERT_EQ(record_use(second, p, far), CUDA_SUCCESS);
  free_in(own, p);
  EXPECT_EQ(collect(*r.device, nullptr), 0u);
  gate.open();
  r.machine->synchronize(far);
  EXPECT_EQ(collect(*r.device, nullptr), 2 * MiB);
  EXPECT_EQ(second.uses.load(), 0u);
  EXPECT_EQ(r.faults(), "");
}

TEST(pending, a_device_that_ends_takes_its_events_with_it) {
  rig r;
  const CUstream far = r.machine->create_stream(1);
  lane_rig& own = r.lane();
  const std::uint64_t p = own.allocate(2 * MiB);
  const std::uint64_t q = own.allocate(2 * MiB);
  sim::gate gate = r.machine->hold(far);
  {
    vm::device second(r.machine->table(), 1, {});
    ASSERT_EQ(record_use(second, p, far), CUDA_SUCCESS);
    ASSERT_EQ(record_use(second, q, far), CUDA_SUCCESS);
    free_in(own, p);
  }
  EXPECT_EQ(r.machine->live().events, 0u);
  EXPECT_EQ(collect(*r.device, nullptr), 2 * MiB);
  free_in(own, q);
  EXPECT_EQ(collect(*r.device, nullptr), 2 * MiB);
  gate.open();
}

TEST(pending, the_per_thread_default_stream_is_touched_by_its_own_thread_only) {
  settings no_fence;
  no_fence.context_fence = false;
  rig r({}, no_fence);
  lane_rig& own = r.lane();
  r.machine->set_device(0);
  lane_rig& mine = r.lane(CU_STREAM_PER_THREAD);
  mine.lane.per_thread_default = true;
  const std::uint64_t p = own.allocate(2 * MiB);
  free_in(mine, p);
  EXPECT_EQ(collect(*r.device, nullptr), 0u);
  std::thread([&] {
    r.machine->set_device(0);
    EXPECT_EQ(collect(*r.device, &mine.lane), 0u);  // names it, but here the handle is another stream
  }).join();
  EXPECT_EQ(calls(r, "cuEventRecord"), 0u);
  EXPECT_EQ(collect(*r.device, &mine.lane), 2 * MiB);
}

}  // namespace
}  // namespace weir::vm
