#include "heap/tagged_stack.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <numeric>
#include <vector>

#include "heap/dice.hpp"
#include "heap/team.hpp"
#include "heap/watched_atom.hpp"

namespace weir::heap {
namespace {

constexpr std::uint32_t none = tagged_stack<>::none;

struct nodes {
  explicit nodes(std::uint32_t count) : links(new std::atomic<std::uint32_t>[count] {}) {}
  auto next() const {
    return [all = links.get()](std::uint32_t i) -> std::atomic<std::uint32_t>& { return all[i]; };
  }
  std::unique_ptr<std::atomic<std::uint32_t>[]> links;
};

TEST(tagged_stack, last_in_is_first_out) {
  nodes n(4);
  tagged_stack<> s;
  EXPECT_TRUE(s.empty());
  EXPECT_EQ(s.pop(n.next()), none);
  for (std::uint32_t i = 0; i < 4; ++i) s.push(i, n.next());
  EXPECT_EQ(s.top(), 3u);
  for (std::uint32_t i = 4; i-- > 0;) EXPECT_EQ(s.pop(n.next()), i);
  EXPECT_EQ(s.pop(n.next()), none);
}

TEST(tagged_stack, takes_the_whole_chain_and_pushes_one) {
  nodes n(6);
  tagged_stack<> s;
  tagged_stack<> other;
  for (std::uint32_t i = 0; i < 5; ++i) s.push(i, n.next());
  other.push(5, n.next());
  const std::uint32_t first = s.take_all();
  EXPECT_EQ(first, 4u);
  EXPECT_TRUE(s.empty());
  EXPECT_EQ(s.take_all(), none);
  std::uint32_t last = first;
  while (n.links[last] != none) last = n.links[last];
  EXPECT_EQ(last, 0u);
  other.push_chain(first, last, n.next());
  for (const std::uint32_t expected : {4u, 3u, 2u, 1u, 0u, 5u}) EXPECT_EQ(other.pop(n.next()), expected);
}

// ABA, by hand: a popper has read "1 on top, 2 below" and sleeps; the world changes and shows it 1 on top again.
template <class Change>
void sleeping_popper(Change&& change, const std::vector<std::uint32_t>& left) {
  std::array<watched_atom<std::uint32_t>, 4> links{};
  const auto next = [&](std::uint32_t i) -> watched_atom<std::uint32_t>& { return links[i]; };
  tagged_stack<watched_atom> s;
  s.push(2, next);
  s.push(1, next);
  int steps = 0;
  std::uint32_t got = none;
  {
    const watch w([&](const void*) {
      if (++steps == 3) change(s, next);  // before its compare-and-swap
    });
    got = s.pop(next);
  }
  EXPECT_GT(steps, 3) << "the popper did not notice";
  EXPECT_EQ(got, 1u);
  for (const std::uint32_t expected : left) EXPECT_EQ(s.pop(next), expected);
  EXPECT_EQ(s.pop(next), none);
}

TEST(tagged_stack, a_sleeping_popper_notices_pops_and_a_push) {
  sleeping_popper(
      [](auto& s, auto& next) {
        ASSERT_EQ(s.pop(next), 1u);
        ASSERT_EQ(s.pop(next), 2u);
        s.push(3, next);
        s.push(1, next);
      },
      {3});
}

TEST(tagged_stack, a_sleeping_popper_notices_take_all) {
  sleeping_popper(
      [](auto& s, auto& next) {
        ASSERT_EQ(s.take_all(), 1u);
        s.push(1, next);
      },
      {});
}

// Few nodes, many threads: what a stack without tags breaks at once. Each node has at most one holder.
TEST(tagged_stack, many_threads_with_few_nodes_never_share_one) {
  constexpr std::uint32_t count = 5;
  nodes n(count);
  tagged_stack<> s;
  for (std::uint32_t i = 0; i < count; ++i) s.push(i, n.next());
  std::array<std::atomic<int>, count> holders{};
  std::atomic<std::uint32_t> shared{0};
  in_threads(4, [&](std::uint32_t who) {
    dice d(who);
    for (std::uint32_t step = 0; step < 10000 * effort; ++step) {
      if (d.chance(8)) {
        // The whole chain at once, and back again.
        const std::uint32_t first = s.take_all();
        if (first == none) continue;
        std::uint32_t last = first;
        for (std::uint32_t i = first; i != none; i = n.links[i].load(std::memory_order_relaxed)) {
          if (holders[i].fetch_add(1) != 0) ++shared;
          last = i;
        }
        for (std::uint32_t i = first; i != none; i = n.links[i].load(std::memory_order_relaxed))
          holders[i].fetch_sub(1);
        s.push_chain(first, last, n.next());
        continue;
      }
      const std::uint32_t a = s.pop(n.next());
      const std::uint32_t b = s.pop(n.next());
      for (const std::uint32_t i : {a, b}) {
        if (i != none && holders[i].fetch_add(1) != 0) ++shared;
      }
      for (const std::uint32_t i : {a, b}) {
        if (i == none) continue;
        holders[i].fetch_sub(1);
        s.push(i, n.next());
      }
    }
  });
  EXPECT_EQ(shared, 0u);
  std::vector<int> seen(count);
  for (std::uint32_t i = s.pop(n.next()); i != none; i = s.pop(n.next())) ++seen[i];
  EXPECT_EQ(seen, std::vector<int>(count, 1));
}

// Producers push each node once; consumers see each once, and what was written into it before the push.
TEST(tagged_stack, passes_every_node_once_with_its_content) {
  constexpr std::uint32_t each = 4000 * effort;
  nodes n(2 * each);
  std::vector<std::uint32_t> content(2 * each);
  std::vector<std::atomic<int>> seen(2 * each);
  std::atomic<std::uint32_t> popped{0};
  std::atomic<std::uint32_t> wrong{0};
  tagged_stack<> s;
  in_threads(4, [&](std::uint32_t who) {
    if (who < 2) {
      for (std::uint32_t i = who * each; i < (who + 1) * each; ++i) {
        content[i] = i * 7;
        s.push(i, n.next());
      }
      return;
    }
    while (popped.load() < 2 * each) {
      const std::uint32_t i = s.pop(n.next());
      if (i == none) {
        std::this_thread::yield();
        continue;
      }
      ++popped;
      ++seen[i];
      if (content[i] != i * 7) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0u);
  for (std::uint32_t i = 0; i < 2 * each; ++i) ASSERT_EQ(seen[i], 1) << "node " << i;
}

}  // namespace
}  // namespace weir::heap
