#include "cli/granule_map.hpp"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

#include "cli/random.hpp"

namespace weir::cli {
namespace {

const void* at(std::uint64_t address) { return reinterpret_cast<const void*>(address); }

constexpr std::uint64_t base = 0x7f3400000000;

TEST(granule_map, disjoint_blocks_are_no_overlap) {
  granule_map map;
  EXPECT_EQ(map.claim(at(base), 256), 0U);
  EXPECT_EQ(map.claim(at(base + 256), 1), 0U);
  EXPECT_EQ(map.claim(at(base + 512), 5 << 20), 0U);
  EXPECT_EQ(map.held(), 2U + (5 << 20) / 256);
  EXPECT_EQ(map.release(at(base + 512), 5 << 20), 0U);
  EXPECT_EQ(map.release(at(base + 256), 1), 0U);
  EXPECT_EQ(map.release(at(base), 256), 0U);
  EXPECT_EQ(map.held(), 0U);
}

TEST(granule_map, every_kind_of_overlap_is_seen) {
  for (const std::uint64_t start : {base + 4096, base + 4096 + 256, base + 8192 - 256, base}) {
    granule_map map;
    ASSERT_EQ(map.claim(at(base + 4096), 4096), 0U);
    EXPECT_EQ(map.claim(at(start), start == base ? 1 << 20 : 256), start == base ? base + 4096 : start) << start - base;
  }
}

TEST(granule_map, freed_twice_is_seen) {
  granule_map map;
  EXPECT_EQ(map.release(at(base + 512), 100), base + 512);
  ASSERT_EQ(map.claim(at(base), 1024), 0U);
  ASSERT_EQ(map.release(at(base), 1024), 0U);
  EXPECT_EQ(map.release(at(base), 1024), base);
}

TEST(granule_map, blocks_may_cross_the_tables_of_4_gib) {
  granule_map map;
  const std::uint64_t edge = std::uint64_t{0x7f35} << 32;
  EXPECT_EQ(map.claim(at(edge - 1024), 2048), 0U);
  EXPECT_EQ(map.claim(at(edge), 256), edge);
  EXPECT_EQ(map.claim(at(edge - 256), 256), edge - 256);
}

TEST(granule_map, agrees_with_a_plain_set) {
  granule_map map;
  std::set<std::uint64_t> held;
  random_source random(3);
  struct block {
    std::uint64_t first, count;
  };
  std::vector<block> blocks;
  for (int i = 0; i < 20000; ++i) {
    if (blocks.size() < 40 || random.one_in(2)) {
      const block b{random.below(20000), 1 + random.below(300)};
      std::uint64_t first_taken = 0;
      for (std::uint64_t g = b.first; g < b.first + b.count && first_taken == 0; ++g) {
        if (held.count(g) != 0) first_taken = base + g * 256;
      }
      const std::uint64_t got = map.claim(at(base + b.first * 256), b.count * 256);
      ASSERT_EQ(got, first_taken);
      // After an overlap the bits are of both; drop what was not held before.
      for (std::uint64_t g = b.first; g < b.first + b.count; ++g) {
        if (first_taken == 0) {
          held.insert(g);
        } else if (held.count(g) == 0) {
          ASSERT_EQ(map.release(at(base + g * 256), 256), 0U);
        }
      }
      if (first_taken == 0) blocks.push_back(b);
    } else {
      const std::size_t which = random.below(blocks.size());
      ASSERT_EQ(map.release(at(base + blocks[which].first * 256), blocks[which].count * 256), 0U);
      for (std::uint64_t g = 0; g < blocks[which].count; ++g) held.erase(blocks[which].first + g);
      blocks[which] = blocks.back();
      blocks.pop_back();
    }
    if (i % 1000 == 0) {
      ASSERT_EQ(map.held(), held.size());
    }
  }
}

TEST(granule_map, neighbours_of_many_threads_do_not_disturb_each_other) {
  granule_map map;
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&map, t] {
      for (int i = 0; i < 20000; ++i) {
        EXPECT_EQ(map.claim(at(base + t * 256), 256), 0U);
        EXPECT_EQ(map.release(at(base + t * 256), 256), 0U);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(map.held(), 0U);
}

}  // namespace
}  // namespace weir::cli
