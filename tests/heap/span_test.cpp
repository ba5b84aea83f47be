#include "heap/span.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "heap/watched_atom.hpp"

namespace weir::heap {
namespace {

std::vector<std::uint32_t> take(auto& s, std::uint32_t want) {
  std::vector<std::uint32_t> out;
  const std::uint32_t count = s.take(want, [&](std::uint32_t b) { out.push_back(b); });
  EXPECT_EQ(count, out.size());
  return out;
}

class span_capacity : public testing::TestWithParam<std::uint32_t> {};

TEST_P(span_capacity, hands_out_each_block_once_and_takes_all_back) {
  const std::uint32_t capacity = GetParam();
  span<> s{};
  s.open(100, 5, capacity);
  EXPECT_EQ(s.free_blocks(), capacity);
  std::vector<std::uint32_t> expected(capacity);
  for (std::uint32_t i = 0; i < capacity; ++i) expected[i] = i;
  EXPECT_EQ(take(s, 1000), expected);
  EXPECT_EQ(s.free_blocks(), 0u);
  EXPECT_TRUE(take(s, 1).empty());
  EXPECT_FALSE(s.close());  // full: on no list
  for (std::uint32_t i = capacity; i-- > 0;) EXPECT_EQ(s.give(i), i == capacity - 1) << "only the first free lists it";
  EXPECT_EQ(s.free_blocks(), capacity);
  s.own();
  EXPECT_TRUE(s.release());
  EXPECT_EQ(s.free_blocks(), 0u);
}

INSTANTIATE_TEST_SUITE_P(blocks, span_capacity,
                         testing::Values(1u, 2u, 63u, 64u, 65u, 127u, 128u, 129u, 192u, 255u, 256u));

TEST(span, takes_the_lowest_blocks_first) {
  span<> s{};
  s.open(0, 0, 200);
  EXPECT_EQ(take(s, 3), (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_FALSE(s.give(1));
  EXPECT_EQ(take(s, 2), (std::vector<std::uint32_t>{1, 3}));
  EXPECT_EQ(take(s, 70).back(), 73u);
  EXPECT_EQ(s.free_blocks(), 200u - 74);
}

TEST(span, an_owner_that_leaves_free_blocks_has_to_list_it) {
  span<> s{};
  s.open(0, 0, 10);
  take(s, 9);
  EXPECT_TRUE(s.close());
  EXPECT_FALSE(s.give(0));  // listed already
  s.own();
  EXPECT_EQ(take(s, 10).size(), 2u);
  EXPECT_FALSE(s.close());
}

TEST(span, is_released_only_when_every_block_is_back) {
  span<> s{};
  s.open(0, 0, 3);
  take(s, 1);
  EXPECT_FALSE(s.release());
  EXPECT_FALSE(s.give(0));
  EXPECT_TRUE(s.release());
}

TEST(span, can_be_opened_again_with_another_class) {
  span<> s{};
  s.open(4, 1, 2);
  EXPECT_TRUE(s.release());
  s.open(4, 70, 7);
  EXPECT_EQ(s.cls, 70);
  EXPECT_EQ(s.blocks, 7);
  EXPECT_EQ(take(s, 9).size(), 7u);
}

// A free between its two steps: the bit is set, the number not yet raised. The owner may take that very block; the
// numbers must come out right whatever the order.
TEST(span, a_free_between_its_steps_does_not_break_the_number) {
  span<watched_atom> s{};
  s.open(0, 0, 2);
  ASSERT_EQ(take(s, 1), std::vector<std::uint32_t>{0});
  {
    const watch w([&, steps = 0](const void*) mutable {
      if (++steps != 2) return;
      EXPECT_FALSE(s.release());                             // one free has not ended
      EXPECT_EQ(take(s, 2), std::vector<std::uint32_t>{0});  // one block is certain; the lowest bit is the fresh one
      EXPECT_EQ(s.free_blocks(), 0u);
      EXPECT_FALSE(s.close());  // full, with a bit set and a free on its way
    });
    EXPECT_TRUE(s.give(0));  // so this free lists it
  }
  s.own();
  EXPECT_EQ(take(s, 2), std::vector<std::uint32_t>{1});
  EXPECT_EQ(s.free_blocks(), 0u);
}

TEST(span, two_frees_of_a_full_span_list_it_once) {
  span<watched_atom> s{};
  s.open(0, 0, 2);
  take(s, 2);
  ASSERT_FALSE(s.close());
  bool second = false;
  bool first = false;
  {
    // The second free runs where the first has read "full" and not changed it yet.
    const watch w([&, steps = 0](const void*) mutable {
      if (++steps == 3) second = s.give(1);
    });
    first = s.give(0);
  }
  EXPECT_NE(first, second);
  EXPECT_EQ(s.free_blocks(), 2u);
}

}  // namespace
}  // namespace weir::heap
