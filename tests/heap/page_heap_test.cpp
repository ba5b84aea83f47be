// One thread: what is claimed, where, and what the bounds say.

#include <gtest/gtest.h>

#include "heap/page_heap_fixture.hpp"

namespace weir::heap {
namespace {

constexpr std::uint32_t group = page_bounds::group_pages;
constexpr std::uint32_t none = no_page;

TEST(page_heap, zeroed_memory_is_an_empty_heap) {
  owned_page_heap<> h(group);
  EXPECT_EQ(h->extent(), 0u);
  EXPECT_EQ(h->claim(1), none);
  EXPECT_EQ(h->claim_thoroughly(1), none);
  EXPECT_FALSE(h->claim_at(0, 1));
  EXPECT_EQ(h->count_free(), 0u);
  EXPECT_EQ(h->longest_free(), 0u);
  EXPECT_TRUE(h->bounds_hold());
}

TEST(page_heap, claims_in_address_order) {
  owned_page_heap<> h(group);
  h->release(100, 50);
  EXPECT_EQ(h->claim(10), 100u);
  EXPECT_EQ(h->claim(10), 110u);
  h->release(100, 10);
  EXPECT_EQ(h->claim(11), 120u);
  EXPECT_EQ(h->claim(5), 100u);
  EXPECT_EQ(h->claim(5), 105u);
  EXPECT_EQ(h->claim(20), none);
  EXPECT_EQ(h->claim(19), 131u);
  EXPECT_EQ(h->count_free(), 0u);
}

TEST(page_heap, neighbours_are_one_run_whatever_the_order_of_their_release) {
  for (int order = 0; order < 6; ++order) {
    owned_page_heap<> h(group);
    const std::uint32_t parts[3] = {60, 64, 130};  // in one word, over the edge, far over
    const std::uint32_t lengths[3] = {4, 66, 70};
    constexpr int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (const int i : orders[order]) h->release(parts[i], lengths[i]);
    EXPECT_EQ(h.promised(0).longest, 140u);
    EXPECT_EQ(h->longest_free(), 140u);
    EXPECT_EQ(h->claim(140), 60u) << "order " << order;
  }
}

TEST(page_heap, a_claim_leaves_what_it_did_not_ask_for) {
  owned_page_heap<> h(group);
  h->release(0, 256);
  EXPECT_TRUE(h->claim_at(63, 130));
  EXPECT_EQ(h->count_free(), 126u);
  EXPECT_EQ(h->count_free(0, 63), 63u);
  EXPECT_EQ(h->count_free(63, 130), 0u);
  EXPECT_EQ(h->count_free(193, 63), 63u);
}

TEST(page_heap, claim_at_takes_all_or_nothing) {
  owned_page_heap<> h(group);
  h->release(0, 200);
  ASSERT_TRUE(h->claim_at(150, 1));
  EXPECT_FALSE(h->claim_at(10, 141));  // meets the taken page in its third word
  EXPECT_EQ(h->count_free(), 199u);
  EXPECT_FALSE(h->claim_at(150, 1));
  EXPECT_FALSE(h->claim_at(199, 2));  // beyond what is free
  EXPECT_EQ(h->count_free(), 199u);
  EXPECT_TRUE(h->bounds_hold());
  EXPECT_TRUE(h->claim_at(10, 140));
}

TEST(page_heap, alignment_is_kept_and_the_rest_stays_free) {
  owned_page_heap<> h(2 * group);
  h->release(1, 2 * group - 1);
  EXPECT_EQ(h->claim(3, 32), 32u);
  EXPECT_EQ(h->claim(100, 64), 64u);
  EXPECT_EQ(h->claim(1, 4096), group);
  EXPECT_EQ(h->claim(31, 1), 1u);
  EXPECT_EQ(h->claim(1, 2), 36u);
  EXPECT_EQ(h->count_free(), 2u * group - 1 - 3 - 100 - 1 - 31 - 1);
}

TEST(page_heap, alignment_that_no_free_run_can_keep_finds_none) {
  owned_page_heap<> h(group);
  h->release(33, 62);  // pages 33 .. 94
  EXPECT_EQ(h->claim(32, 64), none);
  EXPECT_EQ(h->claim_thoroughly(32, 64), none);
  EXPECT_EQ(h->claim(31, 64), 64u);
}

TEST(page_heap, runs_cross_words_and_groups) {
  owned_page_heap<> h(4 * group);
  h->release(group - 10, 20);
  EXPECT_EQ(h.promised(0).suffix, 10u);
  EXPECT_EQ(h.promised(1).prefix, 10u);
  EXPECT_EQ(h->claim(21), none);
  EXPECT_EQ(h->claim(20), group - 10);
  EXPECT_EQ(h->claim(1), none);
}

TEST(page_heap, runs_cover_whole_groups) {
  owned_page_heap<> h(5 * group);
  h->release(group - 1, 3 * group + 2);  // one page, three whole groups, one page
  EXPECT_EQ(h.promised(2).prefix, group);
  EXPECT_EQ(h->claim(3 * group + 3), none);
  EXPECT_EQ(h->claim(3 * group + 2), group - 1);
  h->release(group - 1, 3 * group + 2);
  EXPECT_EQ(h->claim(2 * group, group), group);
  EXPECT_EQ(h->claim(group), 3 * group);
  EXPECT_EQ(h->count_free(), 2u);
}

TEST(page_heap, a_run_over_groups_is_found_after_its_parts_came_in_any_order) {
  for (const bool upwards : {true, false}) {
    owned_page_heap<> h(4 * group);
    for (std::uint32_t i = 0; i < 4; ++i) h->release((upwards ? i : 3 - i) * group, group);
    EXPECT_EQ(h->claim(4 * group), 0u);
  }
}

TEST(page_heap, a_failed_search_lowers_what_was_promised_and_not_below_the_truth) {
  owned_page_heap<> h(2 * group);
  h->release(0, 2 * group);
  ASSERT_TRUE(h->claim_at(1000, 1));
  ASSERT_TRUE(h->claim_at(group + 50, 1));
  EXPECT_EQ(h.promised(0).longest, group);  // claims do not lower
  EXPECT_EQ(h->claim(2 * group - 1), none);
  EXPECT_EQ(h.promised(0).longest, group - 1001);
  EXPECT_EQ(h.promised(0).prefix, 1000u);
  EXPECT_EQ(h.promised(0).suffix, group - 1001);
  EXPECT_EQ(h.promised(1).prefix, 50u);
  EXPECT_TRUE(h->bounds_hold());
}

TEST(page_heap, a_thorough_search_ignores_the_bounds) {
  owned_page_heap<> h(group);
  h->release(8, 8);
  h.bounds[0].store(0);  // as in the middle of a release
  EXPECT_FALSE(h->bounds_hold());
  EXPECT_EQ(h->claim(8), none);
  EXPECT_EQ(h->claim_thoroughly(8), 8u);
}

TEST(page_heap, looks_below) {
  owned_page_heap<> h(group);
  h->release(0, 200);
  ASSERT_TRUE(h->claim_at(60, 1));
  EXPECT_EQ(h->free_below(200, 1000), 139u);
  EXPECT_EQ(h->free_below(200, 7), 7u);
  EXPECT_EQ(h->free_below(61, 10), 0u);
  EXPECT_EQ(h->free_below(60, 1000), 60u);
  EXPECT_EQ(h->free_below(0, 10), 0u);
}

TEST(page_heap, knows_the_longest_run_across_groups) {
  owned_page_heap<> h(3 * group);
  h->release(5, 100);
  h->release(group - 300, 600);
  h->release(3 * group - 20, 20);
  EXPECT_EQ(h->longest_free(), 600u);
}

}  // namespace
}  // namespace weir::heap
