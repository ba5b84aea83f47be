// Threads that claim and release at random; an array of owners tells whether two ever held a page.

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <vector>

#include "heap/dice.hpp"
#include "heap/page_heap_fixture.hpp"
#include "heap/team.hpp"

namespace weir::heap {
namespace {

constexpr std::uint32_t group = page_bounds::group_pages;

struct run {
  std::uint32_t first;
  std::uint32_t pages;
};

class owners {
 public:
  explicit owners(std::uint32_t pages) : of_(new std::atomic<std::uint8_t>[pages] {}) {}

  void take(run r, std::uint32_t who) {
    for (std::uint32_t i = 0; i < r.pages; ++i) {
      if (of_[r.first + i].exchange(static_cast<std::uint8_t>(who + 1), std::memory_order_relaxed) != 0) ++clashes;
    }
  }
  void drop(run r, std::uint32_t who) {
    for (std::uint32_t i = 0; i < r.pages; ++i) {
      if (of_[r.first + i].exchange(0, std::memory_order_relaxed) != who + 1) ++clashes;
    }
  }
  std::atomic<std::uint32_t> clashes{0};

 private:
  std::unique_ptr<std::atomic<std::uint8_t>[]> of_;
};

class page_heap_threads : public testing::TestWithParam<std::uint32_t> {
 protected:
  static constexpr std::uint32_t pages = 3 * group;
  static constexpr std::uint32_t threads = 4;

  void work(std::uint32_t who) {
    dice d(GetParam() * 16 + who);
    std::vector<run> mine;
    const auto give_back = [&] {
      const std::uint32_t i = d.below(static_cast<std::uint32_t>(mine.size()));
      owner.drop(mine[i], who);
      h->release(mine[i].first, mine[i].pages);
      mine[i] = mine.back();
      mine.pop_back();
    };
    for (std::uint32_t step = 0; step < 1000 * effort; ++step) {
      if (!mine.empty() && (d.chance(2) || mine.size() > 12)) {
        give_back();
        continue;
      }
      const std::uint32_t count = d.skewed(1, GetParam());
      const std::uint32_t alignment = d.chance(4) ? 1u << d.below(8) : 1;
      std::uint32_t first = no_page;
      if (d.chance(8)) {
        first = d.below(pages - count);
        if (!h->claim_at(first, count)) continue;
      } else {
        first = d.chance(4) ? h->claim_thoroughly(count, alignment) : h->claim(count, alignment);
        if (first == no_page) continue;
        if (first % alignment != 0) ++owner.clashes;
      }
      mine.push_back({first, count});
      owner.take(mine.back(), who);
    }
    while (!mine.empty()) give_back();
  }

  owned_page_heap<> h{pages};
  owners owner{pages};
};

TEST_P(page_heap_threads, no_page_has_two_owners_and_none_is_lost) {
  h->release(0, pages);
  in_threads(threads, [&](std::uint32_t who) { work(who); });
  EXPECT_EQ(owner.clashes, 0u);
  EXPECT_TRUE(h->bounds_hold());
  EXPECT_EQ(h->count_free(), pages);
  EXPECT_EQ(h->longest_free(), pages);
  EXPECT_EQ(h->claim(pages), 0u);
}

INSTANTIATE_TEST_SUITE_P(largest, page_heap_threads, testing::Values(8u, 60u, 300u, 5000u, 10000u));

// Neighbours released at the same instant must be seen as one run by the bounds.
TEST(page_heap_neighbours, released_together_are_one_run) {
  constexpr std::uint32_t parts = 3;
  owned_page_heap<> h(group);
  std::uint32_t missed = 0;
  std::barrier round(parts + 1);
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < parts; ++i) {
    threads.emplace_back([&, i] {
      for (std::uint32_t n = 0; n < 60 * effort; ++n) {
        round.arrive_and_wait();
        h->release(60 + i * 4, 4);  // pages 60 .. 71, two words
        round.arrive_and_wait();
      }
    });
  }
  for (std::uint32_t n = 0; n < 60 * effort; ++n) {
    round.arrive_and_wait();
    round.arrive_and_wait();
    if (h->claim(12) != 60) ++missed;
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(missed, 0u);
}

// As many aligned places as threads, and each thread holds at most one: a thorough search may never fail.
TEST(page_heap_promise, a_thorough_search_finds_what_is_free_throughout) {
  constexpr std::uint32_t threads = 4;
  for (const std::uint32_t count : {4u, 64u, 128u}) {
    owned_page_heap<> h(group);
    h->release(0, threads * count);
    std::atomic<std::uint32_t> failed{0};
    in_threads(threads, [&](std::uint32_t) {
      for (std::uint32_t step = 0; step < 2000 * effort; ++step) {
        // At most three others hold one.
        const std::uint32_t first = h->claim_thoroughly(count, count, 1 << 20);
        if (first == no_page) {
          ++failed;
        } else {
          h->release(first, count);
        }
      }
    });
    EXPECT_EQ(failed, 0u) << count << " pages";
    EXPECT_EQ(h->longest_free(), threads * count);
  }
}

}  // namespace
}  // namespace weir::heap
