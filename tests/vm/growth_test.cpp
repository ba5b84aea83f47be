#include "rig.hpp"
#include "vm/chunk_size.hpp"

namespace weir::vm {
namespace {

using namespace testing;

TEST(growth, first_run_maps_ten_MiB_and_leaves_the_rest_free) {
  rig r;
  lane_rig& l = r.lane();
  const growth_result g = grow(l.lane, 3 * pages_of_MiB, 1);
  ASSERT_EQ(g.what, growth::done);
  EXPECT_EQ(g.first_page, 0u);
  EXPECT_EQ(l.free_pages(), 7 * pages_of_MiB);
  EXPECT_EQ(r.device->reserved(), 10 * MiB);
  EXPECT_EQ(r.machine->reserved_bytes(0), 10 * MiB);
  EXPECT_EQ(calls(r, "cuMemSetAccess"), 1u);
  EXPECT_TRUE(r.machine->accessible(0, reinterpret_cast<void*>(l.lane.heap->address_of(0)), 10 * MiB));
}

TEST(growth, searches_the_heap_before_it_calls_the_driver) {
  rig r;
  lane_rig& l = r.lane();
  ASSERT_NE(l.allocate(3 * MiB), 0u);
  r.machine->reset_calls();
  EXPECT_EQ(grow(l.lane, 7 * pages_of_MiB, 1).what, growth::done);
  EXPECT_TRUE(r.machine->calls().empty());
}

TEST(growth, maps_only_what_lacks_beside_the_free_tail) {
  rig r;
  lane_rig& l = r.lane();
  ASSERT_NE(l.allocate(3 * MiB), 0u);
  // 7 MiB are free at the end; 27 MiB lack 20 of them.
  const growth_result g = grow(l.lane, 27 * pages_of_MiB, 1);
  ASSERT_EQ(g.what, growth::done);
  EXPECT_EQ(g.first_page, 3 * pages_of_MiB);
  EXPECT_EQ(r.device->reserved(), 30 * MiB);
  EXPECT_EQ(l.free_pages(), 0u);
}

TEST(growth, one_set_access_for_a_range_of_several_chunks) {
  settings s;
  s.chunk_size = 4 * MiB;
  rig r({}, s);
  lane_rig& l = r.lane();
  ASSERT_NE(l.allocate(21 * MiB), 0u);
  EXPECT_EQ(calls(r, "cuMemCreate"), 6u);
  EXPECT_EQ(calls(r, "cuMemSetAccess"), 1u);
  EXPECT_EQ(r.device->reserved(), 22 * MiB);
}

TEST(growth, fills_a_hole_that_lies_between_free_pages) {
  settings s;
  s.chunk_size = 2 * MiB;
  rig r({}, s);
  lane_rig& l = r.lane();
  const std::uint64_t a = l.allocate(8 * MiB);
  const std::uint64_t b = l.allocate(2 * MiB);
  const std::uint64_t c = l.allocate(8 * MiB);
  const std::uint64_t last = l.allocate(2 * MiB);
  l.free(b);
  ASSERT_EQ(retire_free_chunks(l.lane, 0), 2 * MiB);
  l.free(a);
  l.free(c);
  // a, the hole of b, and c together: one stride is mapped.
  const std::uint64_t whole = l.allocate(18 * MiB);
  EXPECT_EQ(whole, a);
  EXPECT_EQ(r.device->reserved(), 20 * MiB);
  l.free(whole);
  l.free(last);
}

TEST(growth, aligned_runs_start_at_their_alignment) {
  rig r;
  lane_rig& l = r.lane();
  ASSERT_EQ(grow(l.lane, 1, 1).what, growth::done);
  for (const std::uint32_t alignment : {2u, 8u, 32u}) {
    const growth_result g = grow(l.lane, 40, alignment);
    ASSERT_EQ(g.what, growth::done);
    EXPECT_EQ(g.first_page % alignment, 0u);
  }
  EXPECT_STREQ(l.lane.heap->fault(), nullptr);
}

TEST(growth, a_request_beyond_the_device_is_out_of_memory_and_changes_nothing) {
  rig r;
  lane_rig& l = r.lane();
  const sim::live_counts before = r.machine->live();
  EXPECT_EQ(grow(l.lane, static_cast<std::uint32_t>(5 * GiB >> heap::page_shift), 1).what, growth::out_of_memory);
  EXPECT_EQ(grow(l.lane, 0xffffffffu, 1).what, growth::out_of_memory);
  EXPECT_EQ(r.machine->live(), before);
  EXPECT_EQ(r.device->reserved(), 0u);
}

TEST(growth, under_a_limit_the_step_falls_back_to_the_need) {  // B69
  settings s;
  s.limit = 16 * MiB;
  rig r({}, s);
  lane_rig& l = r.lane();
  ASSERT_NE(l.allocate(10 * MiB), 0u);
  ASSERT_NE(l.allocate(3 * MiB), 0u);
  EXPECT_EQ(r.device->reserved(), 14 * MiB);
  EXPECT_EQ(grow(l.lane, 4 * pages_of_MiB, 1).what, growth::out_of_memory);  // 1 MiB of tail, 3 lack, 2 allowed
  EXPECT_EQ(r.device->reserved(), 14 * MiB);
  EXPECT_NE(l.allocate(3 * MiB), 0u);
  EXPECT_EQ(r.device->reserved(), 16 * MiB);
}

TEST(growth, where_others_hold_the_device_the_step_falls_back_to_the_need) {  // B69
  rig r;
  lane_rig& l = r.lane();
  r.machine->other_process_holds(0, 4 * GiB - 6 * MiB);
  ASSERT_NE(l.allocate(3 * MiB), 0u);
  EXPECT_EQ(r.device->reserved(), 4 * MiB);
  EXPECT_EQ(r.machine->reserved_bytes(0), 4 * MiB);
  EXPECT_EQ(grow(l.lane, 4 * pages_of_MiB, 1).what, growth::out_of_memory);
  EXPECT_EQ(r.device->reserved(), 4 * MiB);
  EXPECT_EQ(r.machine->live().handles, 1u);
  r.machine->other_process_holds(0, 0);
  EXPECT_NE(l.allocate(4 * MiB), 0u);
}

TEST(growth, a_huge_request_gets_larger_chunks) {
  rig r;
  lane_rig& l = r.lane();
  ASSERT_NE(l.allocate(600 * MiB), 0u);
  EXPECT_EQ(calls(r, "cuMemCreate"), 6u);
  EXPECT_EQ(chunk_strides(600 * MiB, 600 * MiB, 0), 50u);
  EXPECT_EQ(chunk_strides(600 * MiB, 6000 * MiB, 0), 5u);
  EXPECT_EQ(chunk_strides(1 * MiB, 0, 0), 5u);
  EXPECT_EQ(chunk_strides(600 * MiB, 0, 3 * MiB), 2u);
}

TEST(growth, a_lane_gets_further_pieces) {
  sim::machine_config config;
  config.devices[0].memory = 20 * GiB;
  settings s;
  s.piece_size = 4 * GiB;
  rig r(config, s);
  lane_rig& l = r.lane();
  const std::uint64_t a = l.allocate(3 * GiB);
  const std::uint64_t b = l.allocate(3 * GiB);
  const std::uint64_t c = l.allocate(6 * GiB);  // larger than a usual piece
  ASSERT_TRUE(a != 0 && b != 0 && c != 0);
  EXPECT_EQ(r.machine->live().reservations, 3u);
  EXPECT_EQ(l.lane.memory.address_bytes.load(), 16 * GiB);
  l.free(a);
  l.free(b);
  l.free(c);
  EXPECT_EQ(retire_free_chunks(l.lane, 0), 12 * GiB);
  EXPECT_EQ(r.machine->live().reservations, 0u);
  EXPECT_EQ(l.lane.memory.address_bytes.load(), 0u);
}

TEST(growth, the_last_stride_of_a_piece_is_never_mapped) {
  sim::machine_config config;
  config.devices[0].memory = 9 * GiB;
  settings s;
  s.piece_size = 4 * GiB;
  rig r(config, s);
  lane_rig& l = r.lane();
  const std::uint64_t a = l.allocate(4 * GiB - 2 * MiB);
  const std::uint64_t b = l.allocate(4 * GiB - 2 * MiB);
  ASSERT_TRUE(a != 0 && b != 0);
  EXPECT_FALSE(r.machine->accessible(0, reinterpret_cast<void*>(a + 4 * GiB - 2 * MiB), 1));
  l.free(a);
  l.free(b);
  EXPECT_EQ(l.lane.heap->pages.longest_free(), (4 * GiB - 2 * MiB) >> heap::page_shift);
}

TEST(growth, fewer_addresses_do_where_the_driver_refuses_many) {
  sim::machine_config config;
  config.devices[0].memory = 64 * GiB;
  config.max_reservation = 9 * GiB;
  rig r(config);
  lane_rig& l = r.lane();
  ASSERT_NE(l.allocate(3 * MiB), 0u);
  EXPECT_EQ(r.machine->live().reserved_addresses, 8 * GiB);
  EXPECT_EQ(grow(l.lane, static_cast<std::uint32_t>(10 * GiB >> heap::page_shift), 1).what, growth::out_of_memory);
  EXPECT_EQ(r.machine->live().reserved_addresses, 8 * GiB);
}

TEST(growth, a_driver_that_ignores_the_alignment_costs_one_slot_more) {
  sim::machine_config config;
  config.honour_alignment = false;
  rig r(config);
  lane_rig& l = r.lane();
  const std::uint64_t a = l.allocate(3 * MiB);
  ASSERT_NE(a, 0u);
  EXPECT_EQ(l.lane.heap->address_of(0) % heap::slot_bytes, 0u);
  EXPECT_EQ(r.machine->live().reservations, 1u);
  l.free(a);
  retire_free_chunks(l.lane, 0);
  EXPECT_EQ(r.machine->live().reservations, 0u);
}

TEST(growth, without_exportable_handles_plain_ones_do) {
  rig r;
  lane_rig& l = r.lane();
  r.machine->fail("cuMemCreate", 1, sim::result::not_permitted);
  EXPECT_NE(l.allocate(3 * MiB), 0u);
  EXPECT_EQ(calls(r, "cuMemCreate"), 2u);
  EXPECT_NE(l.allocate(30 * MiB), 0u);
  EXPECT_EQ(calls(r, "cuMemCreate"), 5u);
}

TEST(growth, leaves_the_callers_context_alone) {  // C7
  rig r({}, {});
  lane_rig& l = r.lane();
  r.machine->set_device(1);
  ASSERT_NE(l.allocate(3 * MiB), 0u);
  EXPECT_EQ(r.machine->current_device(), 1);
  r.machine->set_device(-1);
  ASSERT_NE(l.allocate(30 * MiB), 0u);
  EXPECT_EQ(r.machine->current_device(), -1);
  EXPECT_EQ(r.faults(), "");
}

TEST(growth, a_sticky_error_is_passed_on_as_itself_and_ends_driver_calls) {
  rig r;
  lane_rig& l = r.lane();
  r.machine->fail("cuMemMap", 1, sim::result::illegal_address);
  growth_result g = grow(l.lane, 16, 1);
  EXPECT_EQ(g.what, growth::failed);
  EXPECT_EQ(g.error, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_TRUE(r.device->lost);
  r.machine->reset_calls();
  g = grow(l.lane, 16, 1);
  EXPECT_EQ(g.error, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_TRUE(r.machine->calls().empty());
}

}  // namespace
}  // namespace weir::vm
