// A lane that ends with blocks still out.

#include <gtest/gtest.h>

#include "heap/lane_fixture.hpp"

namespace weir::heap {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

TEST(lane_end, abandoned_blocks_are_forgotten_and_their_pages_free) {
  mapped_lane lane(64 * mib);
  std::vector<std::uint64_t> live;
  for (const std::uint32_t cls : {0u, 15u, 60u}) {
    const std::vector<void*> blocks = refill(lane.heap, cls, 10);
    for (const void* p : blocks) {
      state_of(number_of(p))->store(code_of(cls) | live_bit);
      live.push_back(number_of(p));
    }
    flush(lane.heap, cls, refill(lane.heap, cls, 10));  // some in the bins
  }
  live.push_back(number_of(lane->take_run(5 * mib, 256, false)));
  // And one on pages that were mapped for it.
  live.push_back(number_of(lane->publish_run(lane.first + pages_per_slot / 2, 32, 2 * mib)));
  lane.mapped_bytes += 2 * mib;
  lane.expect_sound();

  EXPECT_EQ(lane->abandon_blocks(), live.size());
  for (const std::uint64_t at : live) {
    block_place place;
    EXPECT_FALSE(lane_heap::find(at, place));
    EXPECT_EQ(state_of(at)->load() & live_bit, 0);
  }
  lane.expect_sound();
  EXPECT_EQ(lane->taken(), 0u);
  EXPECT_EQ(lane->count().free_pages, lane.mapped_bytes);
  EXPECT_EQ(lane->count().in_bins, 0u);
  // What is left serves as before.
  EXPECT_EQ(drain(lane.heap, 0).size(), lane.mapped_bytes / 256);
  lane.expect_sound();
}

}  // namespace
}  // namespace weir::heap
