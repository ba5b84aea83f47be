#include "heap/magazine.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "heap/team.hpp"

namespace weir::heap {
namespace {

constexpr std::uint32_t none = tagged_stack<>::none;

struct owned_pool {
  owned_pool() : storage(new magazine[magazine_pool::most]{}) { pool.attach(storage.get()); }
  std::unique_ptr<magazine[]> storage;
  magazine_pool pool;
};

TEST(magazine_pool, hands_out_each_magazine_once_and_refuses_the_next) {
  owned_pool p;
  std::vector<bool> seen(magazine_pool::most);
  for (std::uint32_t i = 0; i < magazine_pool::most; ++i) {
    const std::uint32_t index = p.pool.take();
    ASSERT_LT(index, magazine_pool::most);
    ASSERT_FALSE(seen[index]);
    seen[index] = true;
  }
  for (int i = 0; i < 5; ++i) EXPECT_EQ(p.pool.take(), none);
  p.pool.give(77);
  EXPECT_EQ(p.pool.take(), 77u);
  EXPECT_EQ(p.pool.take(), none);
}

TEST(magazine_pool, an_empty_one_that_came_back_goes_first) {
  owned_pool p;
  const std::uint32_t a = p.pool.take();
  p.pool.give(a);
  EXPECT_EQ(p.pool.take(), a);
}

TEST(magazine_pool, threads_that_race_to_the_end_share_none) {
  owned_pool p;
  std::vector<std::atomic<int>> taken(magazine_pool::most);
  std::atomic<std::uint32_t> total{0};
  in_threads(4, [&](std::uint32_t) {
    for (std::uint32_t i = p.pool.take(); i != none; i = p.pool.take()) {
      ++taken[i];
      ++total;
    }
  });
  EXPECT_EQ(total, magazine_pool::most);
  for (const auto& t : taken) ASSERT_EQ(t, 1);
}

}  // namespace
}  // namespace weir::heap
