#include "heap/size_classes.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace weir::heap {
namespace {

TEST(size_classes, grow_strictly_in_whole_granules) {
  for (std::uint32_t c = 0; c < class_count; ++c) {
    EXPECT_EQ(classes[c].bytes % granule_bytes, 0u) << "class " << c;
    if (c != 0) {
      EXPECT_GT(classes[c].bytes, classes[c - 1].bytes) << "class " << c;
    }
  }
}

TEST(size_classes, class_of_is_the_smallest_class_that_holds_the_bytes) {
  std::uint32_t expected = 0;
  for (std::size_t bytes = 1; bytes <= max_small_bytes; ++bytes) {
    while (classes[expected].bytes < bytes) ++expected;
    ASSERT_EQ(class_of(bytes), expected) << bytes << " bytes";
  }
  EXPECT_EQ(expected, class_count - 1);
}

TEST(size_classes, class_of_inverts_the_class_sizes) {
  for (std::uint32_t c = 0; c < class_count; ++c) EXPECT_EQ(class_of(classes[c].bytes), c);
}

TEST(size_classes, waste_inside_a_block_is_at_most_an_eighth_above_2_kib) {
  for (std::size_t bytes = 2049; bytes <= max_small_bytes; ++bytes) {
    const std::size_t waste = classes[class_of(bytes)].bytes - bytes;
    ASSERT_LE(waste * 8, bytes) << bytes << " bytes";
  }
}

TEST(size_classes, waste_below_2_kib_is_less_than_a_granule) {
  for (std::size_t bytes = 1; bytes <= 2048; ++bytes) {
    ASSERT_LT(classes[class_of(bytes)].bytes - bytes, granule_bytes) << bytes << " bytes";
  }
}

// The state byte beside a block's first keeps the waste in 7 bits, in units that the class names.
TEST(size_classes, waste_fits_its_seven_bits_with_less_than_a_unit_lost) {
  for (std::size_t bytes = 1; bytes <= max_small_bytes; ++bytes) {
    const class_info& c = classes[class_of(bytes)];
    ASSERT_LE((c.bytes - bytes) >> c.waste_shift, 127u) << bytes << " bytes";
  }
  EXPECT_EQ(classes[0].waste_mask, 0);  // one granule: no second byte
  EXPECT_EQ(classes[0].waste_offset, 0);
  for (std::uint32_t c = 1; c < class_count; ++c) {
    EXPECT_EQ(classes[c].waste_mask, 0x7f);
    EXPECT_EQ(classes[c].waste_offset, 1);
  }
}

TEST(size_classes, alignment_is_kept_by_every_block_of_a_span) {
  for (std::size_t alignment = 256; alignment <= page_bytes; alignment *= 2) {
    for (std::size_t bytes = 1; bytes <= max_small_bytes; bytes += 193) {
      const std::uint32_t c = class_of(bytes, alignment);
      ASSERT_LT(c, class_count) << bytes << " bytes at " << alignment;
      ASSERT_GE(classes[c].bytes, bytes);
      for (std::uint32_t block = 0; block < classes[c].blocks; ++block) {
        ASSERT_EQ(std::size_t{block} * classes[c].bytes % alignment, 0u) << bytes << " bytes at " << alignment;
      }
      // No smaller class would do.
      for (std::uint32_t less = class_of(bytes); less < c; ++less) ASSERT_NE(classes[less].bytes % alignment, 0u);
    }
  }
}

TEST(size_classes, least_alignment_costs_nothing) {
  for (std::size_t bytes = 1; bytes <= max_small_bytes; bytes += 101) {
    ASSERT_EQ(class_of(bytes, granule_bytes), class_of(bytes));
  }
}

TEST(size_classes, spans_hold_4_to_256_blocks_and_a_tail_shorter_than_a_block) {
  for (std::uint32_t c = 0; c < class_count; ++c) {
    const class_info& k = classes[c];
    EXPECT_GE(k.blocks, 4u) << "class " << c;
    EXPECT_LE(k.blocks, 256u) << "class " << c;
    const std::size_t span = std::size_t{k.pages} << page_shift;
    const std::size_t used = std::size_t{k.blocks} * k.bytes;
    ASSERT_LE(used, span);
    EXPECT_LT(span - used, k.bytes) << "class " << c;
    EXPECT_LE(static_cast<double>(span - used), 0.04 * static_cast<double>(span)) << "class " << c;
  }
}

TEST(size_classes, magazines_hold_2_to_30_blocks_fewer_of_larger_classes) {
  for (std::uint32_t c = 0; c < class_count; ++c) {
    EXPECT_GE(classes[c].batch, 2u);
    EXPECT_LE(classes[c].batch, 30u);
    if (c != 0) {
      EXPECT_LE(classes[c].batch, classes[c - 1].batch);
    }
    EXPECT_GE(classes[c].magazine_limit, classes[c].batch);
  }
}

}  // namespace
}  // namespace weir::heap
