// The lock-free parts take the atomics of a user: a model checker's, here a thin wrapper that counts.

#include <gtest/gtest.h>

#include <array>

#include "heap/page_heap_fixture.hpp"
#include "heap/span.hpp"
#include "heap/tagged_stack.hpp"
#include "heap/watched_atom.hpp"

namespace weir::heap {
namespace {

TEST(atom, page_heap_works_on_a_users_atomics) {
  std::uint64_t steps = 0;
  const watch w([&](const void*) { ++steps; });
  owned_page_heap<watched_atom> h(2 * page_bounds::group_pages);
  h->release(0, 5000);
  EXPECT_EQ(h->claim(4500), 0u);
  EXPECT_EQ(h->claim_thoroughly(500), 4500u);
  h->release(0, 5000);
  EXPECT_TRUE(h->bounds_hold());
  EXPECT_EQ(h->longest_free(), 5000u);
  EXPECT_EQ(h->free_below(5000, 9000), 5000u);
  EXPECT_GT(steps, 100u);
}

TEST(atom, span_works_on_a_users_atomics) {
  std::uint64_t steps = 0;
  const watch w([&](const void*) { ++steps; });
  span<watched_atom> s{};
  s.open(7, 3, 64);
  std::uint32_t taken = 0;
  EXPECT_EQ(s.take(64, [&](std::uint32_t) { ++taken; }), 64u);
  EXPECT_EQ(taken, 64u);
  EXPECT_FALSE(s.close());
  EXPECT_TRUE(s.give(5));
  s.own();
  EXPECT_FALSE(s.release());
  EXPECT_EQ(s.free_blocks(), 1u);
  EXPECT_GT(steps, 8u);
}

TEST(atom, tagged_stack_works_on_a_users_atomics) {
  std::uint64_t steps = 0;
  const watch w([&](const void*) { ++steps; });
  std::array<watched_atom<std::uint32_t>, 3> links{};
  const auto next = [&](std::uint32_t i) -> watched_atom<std::uint32_t>& { return links[i]; };
  tagged_stack<watched_atom> s;
  s.push(1, next);
  s.push(2, next);
  EXPECT_EQ(s.pop(next), 2u);
  EXPECT_EQ(s.take_all(), 1u);
  EXPECT_TRUE(s.empty());
  EXPECT_GT(steps, 6u);
}

}  // namespace
}  // namespace weir::heap
