#include "heap/page_bounds.hpp"

#include <gtest/gtest.h>

#include "heap/dice.hpp"

namespace weir::heap {
namespace {

TEST(page_bounds, zero_is_an_empty_group) {
  const page_bounds b = page_bounds::unpack(0);
  EXPECT_EQ(b.prefix + b.suffix + b.longest + b.version, 0u);
  EXPECT_EQ(page_bounds{}.pack(), 0u);
}

TEST(page_bounds, packing_keeps_each_field_apart) {
  dice random(1);
  for (int i = 0; i < 100000; ++i) {
    const page_bounds b{random.below(4097), random.below(4097), random.below(4097), random.below(1u << 25)};
    const page_bounds back = page_bounds::unpack(b.pack());
    ASSERT_EQ(back.prefix, b.prefix);
    ASSERT_EQ(back.suffix, b.suffix);
    ASSERT_EQ(back.longest, b.longest);
    ASSERT_EQ(back.version, b.version);
  }
  const page_bounds full{4096, 4096, 4096, 0x1ffffff};
  EXPECT_EQ(page_bounds::unpack(full.pack()).longest, 4096u);
}

TEST(page_bounds, version_wraps_without_touching_the_bounds) {
  const page_bounds last{1, 2, 3, 0x1ffffff};
  const page_bounds next = page_bounds::unpack(last.raised({}).pack());
  EXPECT_EQ(next.version, 0u);
  EXPECT_EQ(next.prefix, 1u);
  EXPECT_EQ(next.suffix, 2u);
  EXPECT_EQ(next.longest, 3u);
}

TEST(page_bounds, raising_keeps_both_promises) {
  const page_bounds a{5, 0, 9, 3};
  const page_bounds b{1, 7, 8, 40};
  const page_bounds both = a.raised(b);
  EXPECT_EQ(both.prefix, 5u);
  EXPECT_EQ(both.suffix, 7u);
  EXPECT_EQ(both.longest, 9u);
  EXPECT_EQ(both.version, 4u);  // its own, one on
}

TEST(page_bounds, promising_more_looks_at_each_bound) {
  const page_bounds b{4, 4, 4, 0};
  EXPECT_FALSE(b.promises_more_than(b));
  EXPECT_TRUE(b.promises_more_than({3, 4, 4, 0}));
  EXPECT_TRUE(b.promises_more_than({4, 3, 4, 0}));
  EXPECT_TRUE(b.promises_more_than({4, 4, 3, 0}));
  EXPECT_FALSE(b.promises_more_than({9, 9, 9, 0}));
}

}  // namespace
}  // namespace weir::heap
