// Refills, bins and spans of one lane, one thread.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "heap/lane_fixture.hpp"

namespace weir::heap {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

class every_class : public testing::TestWithParam<std::uint32_t> {};

TEST_P(every_class, blocks_are_cut_from_spans_and_come_back_whole) {
  const std::uint32_t cls = GetParam();
  const class_info& k = classes[cls];
  const std::size_t mapped = 3 * (std::size_t{k.pages} << page_shift);
  const mapped_lane lane(mapped);
  const std::vector<void*> blocks = drain(lane.heap, cls);
  EXPECT_EQ(blocks.size(), 3 * k.blocks);
  std::set<std::uint64_t> starts;
  for (const void* b : blocks) starts.insert(number_of(b));
  EXPECT_EQ(starts.size(), blocks.size());
  std::uint64_t before = 0;
  for (const std::uint64_t start : starts) {
    ASSERT_GE(start, std::max(lane.base, before));
    before = start + k.bytes;
    ASSERT_EQ((start - lane.base) % (std::size_t{k.pages} << page_shift) % k.bytes, 0u);
  }
  EXPECT_LE(before, lane.base + mapped);
  EXPECT_EQ(lane->taken(), std::uint64_t{k.bytes} * blocks.size());
  lane.expect_sound();
  flush(lane.heap, cls, blocks);
  lane.expect_sound();
  lane.expect_all_free();
}

INSTANTIATE_TEST_SUITE_P(classes, every_class, testing::Range(0u, class_count));

TEST(lane_spans, a_refill_gives_at_most_what_is_wanted) {
  const mapped_lane lane(mib);
  EXPECT_EQ(refill(lane.heap, 0, 7).size(), 7u);
  const std::vector<void*> full = refill(lane.heap, 0, 30);
  ASSERT_EQ(full.size(), 30u);
  flush(lane.heap, 0, full);
  // From a magazine too: what is over stays in the lane.
  EXPECT_EQ(refill(lane.heap, 0, 1).size(), 1u);
  EXPECT_EQ(lane->count().in_bins, 29u * 256);
  EXPECT_EQ(refill(lane.heap, 0, 4).size(), 4u);
  lane.expect_sound();
  EXPECT_EQ(lane->count().in_bins, 25u * 256);
}

TEST(lane_spans, bins_come_before_spans_and_spans_before_pages) {
  const mapped_lane lane(mib);
  const std::vector<void*> a = refill(lane.heap, 3, 30);
  const std::uint64_t pages_left = lane->count().free_pages;
  flush(lane.heap, 3, a);
  std::vector<void*> again = refill(lane.heap, 3, 30);
  EXPECT_TRUE(std::is_permutation(a.begin(), a.end(), again.begin(), again.end()));
  // 64 blocks a span: the next come from the same one.
  EXPECT_EQ(refill(lane.heap, 3, 30).size(), 30u);
  EXPECT_EQ(refill(lane.heap, 3, 30).size(), 4u);
  EXPECT_EQ(lane->count().free_pages, pages_left);
  EXPECT_EQ(refill(lane.heap, 3, 30).size(), 30u);
  EXPECT_LT(lane->count().free_pages, pages_left);
}

TEST(lane_spans, no_pages_no_blocks) {
  const mapped_lane lane(0);
  EXPECT_TRUE(refill(lane.heap, 0, 30).empty());
  EXPECT_TRUE(refill(lane.heap, 0, 30, true).empty());
  EXPECT_EQ(lane->taken(), 0u);
  lane.expect_sound();
}

TEST(lane_spans, pages_that_the_caller_claimed_become_a_span) {
  mapped_lane lane(0);
  void* out[magazine::capacity];
  // Mapped for a request, so never free before.
  EXPECT_EQ(lane->refill_from(lane.first, 79, out, 2), 2u);
  EXPECT_EQ(number_of(out[1]), lane.base);  // the lowest goes on top
  lane.mapped_bytes = std::size_t{classes[79].pages} << page_shift;
  lane.expect_sound();
  lane->flush(79, out, 2);
  lane.expect_all_free();
}

TEST(lane_spans, the_limit_of_the_bins_is_kept) {
  const mapped_lane lane(16 * mib);
  for (const std::uint64_t limit : {std::uint64_t{0}, std::uint64_t{10000}, std::uint64_t{2 * mib}}) {
    lane->bin_limit = limit;
    for (const std::uint32_t cls : {0u, 20u, 60u}) {
      const std::vector<void*> blocks = drain(lane.heap, cls);
      ASSERT_FALSE(blocks.empty());
      flush(lane.heap, cls, blocks);
      lane.expect_sound();  // the limit among others
      EXPECT_GT(lane->count().in_bins + 30u * classes[cls].bytes, limit) << "the bins are hardly used";
      lane.expect_all_free();
    }
  }
}

TEST(lane_spans, full_bins_make_way_for_the_class_that_moves) {
  const mapped_lane lane(4 * mib);
  lane->bin_limit = 64 << 10;
  flush(lane.heap, 0, drain(lane.heap, 0));
  EXPECT_GT(lane->count().in_bins, 56u << 10);
  lane->release_free_spans();
  // A flush moves at most one magazine of another class away, so it takes a few of these smaller ones.
  std::vector<void*> blocks = refill(lane.heap, 15, 5);
  bool kept = false;
  for (int round = 0; round < 5 && !kept; ++round) {
    flush(lane.heap, 15, blocks);
    lane.expect_sound();
    blocks = refill(lane.heap, 15, 30);
    kept = blocks.size() == 5;  // the magazine; a span would give 16
    for (; blocks.size() > 5; blocks.pop_back())
      lane->give_block(*find_slot(number_of(blocks.back())), number_of(blocks.back()));
  }
  EXPECT_TRUE(kept);
  flush(lane.heap, 15, blocks);
  lane.expect_all_free();
}

TEST(lane_spans, blocks_go_to_the_spans_when_magazines_run_out) {
  const mapped_lane lane(16 * mib);
  lane->bin_limit = ~std::uint64_t{0};
  const std::vector<void*> blocks = drain(lane.heap, 0);
  ASSERT_GT(blocks.size(), magazine_pool::most);
  for (void* const& b : blocks) lane->flush(0, &b, 1);  // one magazine each
  const lane_counts c = lane->count();
  EXPECT_EQ(c.in_bins, magazine_pool::most * 256u);
  EXPECT_EQ(c.free_in_spans, (blocks.size() - magazine_pool::most) * 256);
  lane.expect_sound();
  EXPECT_EQ(drain(lane.heap, 0).size(), blocks.size());
}

TEST(lane_spans, flushing_nothing_leaves_no_empty_magazine) {
  const mapped_lane lane(mib);
  const std::vector<void*> blocks = refill(lane.heap, 0, 30);
  flush(lane.heap, 0, blocks);
  lane->flush(0, nullptr, 0);
  EXPECT_EQ(refill(lane.heap, 0, 30).size(), 30u);
  flush(lane.heap, 0, blocks);
  lane->flush(0, nullptr, 0);
  EXPECT_EQ(lane->empty_bins(), 30u);
}

TEST(lane_spans, only_spans_with_no_block_out_are_released) {
  const mapped_lane lane(4 * mib);
  lane->bin_limit = 0;
  const std::vector<void*> blocks = drain(lane.heap, 15);  // 16 blocks a span of one page
  ASSERT_EQ(blocks.size(), 64u * 16);
  std::vector<void*> kept;
  std::vector<void*> freed;
  // One block of every fourth span stays out.
  for (void* b : blocks) {
    const std::uint64_t at = number_of(b) - lane.base;
    (at / page_bytes % 4 == 0 && at % page_bytes == 5 * 4096 ? kept : freed).push_back(b);
  }
  ASSERT_EQ(kept.size(), 16u);
  flush(lane.heap, 15, freed);
  EXPECT_EQ(lane->release_free_spans(), 48u);
  EXPECT_EQ(lane->release_free_spans(), 0u);
  lane.expect_sound();
  EXPECT_EQ(lane->count().free_in_spans, 16u * 15 * 4096);
  flush(lane.heap, 15, kept);
  EXPECT_EQ(lane->release_free_spans(), 16u);
  lane.expect_all_free();
}

TEST(lane_spans, pages_of_one_class_serve_another_after_release) {
  const mapped_lane lane(4 * mib);
  std::uint64_t before = 0;
  for (std::uint32_t cls = 0; cls < class_count; cls += 7) {
    const std::vector<void*> blocks = drain(lane.heap, cls);
    ASSERT_FALSE(blocks.empty()) << "class " << cls << " after " << before;
    flush(lane.heap, cls, blocks);
    lane.expect_all_free();
    before = cls;
  }
}

TEST(lane_spans, peak_remembers_the_most_that_was_taken) {
  const mapped_lane lane(4 * mib);
  const std::vector<void*> a = refill(lane.heap, 79, 2);
  flush(lane.heap, 79, a);
  lane->empty_bins();
  EXPECT_EQ(lane->taken(), 0u);
  EXPECT_EQ(lane->taken_peak.load(), 2u * mib);
}

TEST(lane_spans, live_blocks_are_counted_by_their_state_bytes) {
  // A span that begins before a slot's end and goes on in the next.
  mapped_lane lane(0, 3 * slot_bytes);
  const class_info& k = classes[79];
  const std::uint32_t start = lane.first + pages_per_slot - k.pages / 2;
  void* out[magazine::capacity];
  ASSERT_EQ(lane->refill_from(start, 79, out, 4), 4u);
  lane.mapped_bytes = std::size_t{k.pages} << page_shift;
  EXPECT_EQ(lane->count().live_blocks, 0u);
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::uint64_t address = number_of(out[i]);
    atomic_state* state = state_of(address);
    state[k.waste_offset].store(3);
    state[0].store(code_of(79) | live_bit);
    EXPECT_EQ(lane->count().live_blocks, i + 1);
  }
  EXPECT_EQ(lane->count().live_small, 4u * k.bytes);
  EXPECT_EQ(lane->count().small_waste, std::uint64_t{4 * 3} << k.waste_shift);
  lane.expect_sound();
}

}  // namespace
}  // namespace weir::heap
