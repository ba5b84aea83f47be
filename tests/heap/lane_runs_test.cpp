// Large runs of one lane.

#include <gtest/gtest.h>

#include <limits>

#include "heap/lane_fixture.hpp"

namespace weir::heap {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

TEST(lane_runs, a_run_is_live_until_it_is_freed) {
  const mapped_lane lane(64 * mib);
  void* p = lane->take_run(3 * mib + 5, 256, false);
  ASSERT_EQ(number_of(p), lane.base);
  block_place at;
  ASSERT_TRUE(lane_heap::find(lane.base, at));
  EXPECT_EQ(at.state, code_large | live_bit);
  EXPECT_EQ(state_of(lane.base)->load(), 0);  // the record says it all
  const lane_counts c = lane->count();
  EXPECT_EQ(c.large, 3 * mib + page_bytes);
  EXPECT_EQ(c.large_waste, page_bytes - 5);
  EXPECT_EQ(c.live_blocks, 1u);
  lane.expect_sound();
  EXPECT_TRUE(lane->free_run(*find_slot(lane.base), lane.base));
  EXPECT_FALSE(lane_heap::find(lane.base, at));
  EXPECT_EQ(lane->kind_at(*find_slot(lane.base), lane.base), run_kind::freed);
  lane.expect_all_free();
}

TEST(lane_runs, a_second_free_is_refused_and_changes_nothing) {
  const mapped_lane lane(8 * mib);
  slot& s = *find_slot(lane.base);
  ASSERT_NE(lane->take_run(2 * mib, 256, false), nullptr);
  EXPECT_TRUE(lane->free_run(s, lane.base));
  EXPECT_FALSE(lane->free_run(s, lane.base));
  EXPECT_FALSE(lane->free_run(s, lane.base + mib));  // never a run
  lane.expect_all_free();
}

TEST(lane_runs, alignment_up_to_2_mib) {
  const mapped_lane lane(64 * mib);
  ASSERT_NE(lane->take_run(mib + 1, 256, false), nullptr);
  for (std::size_t alignment = page_bytes; alignment <= 2 * mib; alignment *= 2) {
    for (const bool thorough : {false, true}) {
      const void* p = lane->take_run(mib + 1, alignment, thorough);
      ASSERT_NE(p, nullptr);
      EXPECT_EQ(number_of(p) % alignment, 0u);
    }
  }
  lane.expect_sound();
}

TEST(lane_runs, sizes_that_wrap_or_exceed_the_lane_find_nothing) {
  const mapped_lane lane(8 * mib);
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  for (const std::size_t bytes :
       {most, most - 1, most - page_bytes, most - page_bytes + 2, std::size_t{1} << 48, (std::size_t{1} << 48) + 1,
        std::size_t{1} << 45, std::size_t{1} << 40, (std::size_t{1} << 40) + 1, std::size_t{0}}) {
    for (const bool thorough : {false, true}) EXPECT_EQ(lane->take_run(bytes, 256, thorough), nullptr) << bytes;
  }
  lane.expect_all_free();
}

TEST(lane_runs, runs_over_several_slots) {
  constexpr std::size_t piece = 12ull << 30;
  const std::size_t mapped = piece - stride_bytes;  // the last 2 MiB stay unmapped
  const mapped_lane lane(mapped, piece);
  ASSERT_NE(lane->take_run(7 * mib, 256, false), nullptr);
  const void* p = lane->take_run(9ull << 30, 256, false);
  ASSERT_EQ(number_of(p), lane.base + 7 * mib);
  lane.expect_sound();
  // Any address of it, in any slot.
  for (std::uint64_t offset = 0; offset < 9ull << 30; offset += 61 * mib + 12345) {
    block_place at;
    ASSERT_TRUE(lane_heap::find(number_of(p) + offset, at)) << offset;
    EXPECT_EQ(at.base, number_of(p));
    EXPECT_EQ(at.bytes, 9ull << 30);
    EXPECT_EQ(at.in, find_slot(lane.base));
  }
  EXPECT_TRUE(lane->free_run(*find_slot(number_of(p)), number_of(p)));
  EXPECT_TRUE(lane->free_run(*find_slot(lane.base), lane.base));
  lane.expect_all_free();
  // The whole piece.
  EXPECT_EQ(number_of(lane->take_run(mapped, 256, true)), lane.base);
  lane.expect_sound();
}

TEST(lane_runs, pages_mapped_for_a_request_are_counted_though_they_were_never_free) {
  mapped_lane lane(0);
  void* p = lane->publish_run(lane.first + 32, 32, 2 * mib - 100);
  lane.mapped_bytes = 2 * mib;
  lane.expect_sound();
  EXPECT_EQ(lane->count().large_waste, 100u);
  EXPECT_TRUE(lane->free_run(*find_slot(number_of(p)), number_of(p)));
  EXPECT_EQ(lane->count().free_pages, 2 * mib);
  lane.expect_sound();
}

}  // namespace
}  // namespace weir::heap
