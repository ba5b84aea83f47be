// What the records cost in host memory, as share of what is mapped.

#include "heap/metadata.hpp"

#include <gtest/gtest.h>

#include "heap/lane_fixture.hpp"

namespace weir::heap {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

double share(const lane_heap& lane, std::size_t mapped) {
  return 100.0 * static_cast<double>(lane.metadata_bytes()) / static_cast<double>(mapped);
}

// As a caller leaves it: the state and the waste written.
void make_live(const void* p, std::uint32_t cls) {
  atomic_state* state = state_of(number_of(p));
  state[classes[cls].waste_offset].store(1, std::memory_order_relaxed);
  state[0].store(code_of(cls) | live_bit, std::memory_order_relaxed);
}

// Fills the lane with live blocks of one class, then gives them all back.
double share_of_class(std::uint32_t cls, std::size_t mapped) {
  const mapped_lane lane(mapped);
  std::vector<void*> blocks = drain(lane.heap, cls);
  for (const void* p : blocks) make_live(p, cls);
  const double full = share(lane.heap, mapped);
  flush(lane.heap, cls, blocks);
  return std::max(full, share(lane.heap, mapped));
}

TEST(metadata, an_empty_lane_costs_little) {
  const mapped_lane lane(0);
  EXPECT_LE(lane->metadata_bytes(), 64u << 10);
}

TEST(metadata, the_smallest_blocks_everywhere_cost_at_most_0_6_percent) {
  const double s = share_of_class(0, 2048 * mib);
  EXPECT_LE(s, 0.6);
  EXPECT_GE(s, 0.39) << "a byte a granule is the least";
  RecordProperty("percent", std::to_string(s));
}

TEST(metadata, middle_blocks_cost_at_most_0_6_percent) {
  for (const std::uint32_t cls : {15u, 40u, 55u}) EXPECT_LE(share_of_class(cls, 512 * mib), 0.6) << "class " << cls;
}

TEST(metadata, blocks_of_1_mib_cost_at_most_0_5_percent) {
  // A host page of states for each block (0.39 %), and one of span records for each span (0.1 %).
  EXPECT_LE(share_of_class(79, 2048 * mib), 0.5);
}

TEST(metadata, large_runs_cost_at_most_0_2_percent) {
  for (const std::size_t bytes : {4 * mib, 20 * mib, 300 * mib}) {
    const mapped_lane lane(2048 * mib);
    while (lane->take_run(bytes, 256, false) != nullptr) {
    }
    EXPECT_LE(share(lane.heap, 2048 * mib), 0.2) << bytes;
  }
}

TEST(metadata, reserved_memory_is_zero_and_lazy_and_can_be_cleared) {
  constexpr std::size_t bytes = std::size_t{1} << 30;
  auto* p = static_cast<unsigned char*>(reserve_metadata(bytes));
  ASSERT_NE(p, nullptr);
  EXPECT_EQ(resident_metadata(p, bytes), 0u);
  for (std::size_t i = 0; i < 100; ++i) p[i * 10 * 4096] = 1;
  EXPECT_EQ(resident_metadata(p, bytes), 100u * 4096);
  EXPECT_EQ(resident_metadata(p + 10 * 4096, 4096), 4096u);
  clear_metadata(p, bytes);
  EXPECT_EQ(resident_metadata(p, bytes), 0u);
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(p[i * 10 * 4096], 0);
}

TEST(metadata, a_removed_piece_gives_its_records_back) {
  mapped_lane lane(64 * mib);
  const std::size_t before = lane->metadata_bytes();
  const std::vector<void*> blocks = drain(lane.heap, 0);
  for (const void* p : blocks) make_live(p, 0);
  EXPECT_GT(lane->metadata_bytes(), before + 256 * 1024);
  lane->bin_limit = 0;
  flush(lane.heap, 0, blocks);
  lane->release_free_spans();
  ASSERT_TRUE(lane->pages.claim_at(lane.first, 64 * mib >> page_shift));
  lane->remove_piece(lane.first);
  EXPECT_LE(lane->metadata_bytes(), before + 16 * 1024);
}

}  // namespace
}  // namespace weir::heap
