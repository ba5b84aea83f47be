// The harness under the benchmarks: threads that start together, the ring, the sizes.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

#include "random.hpp"
#include "ring.hpp"
#include "team.hpp"

namespace {

using weir::bench::generator;
using weir::bench::log_uniform_sizes;
using weir::bench::patience;
using weir::bench::ring;
using weir::bench::team;

TEST(team, every_member_works_once_a_round) {
  team crew(5, nullptr);
  std::vector<std::atomic<int>> times(5);
  for (int round = 0; round < 200; ++round) crew.run([&](std::size_t member) { ++times[member]; });
  for (const auto& t : times) EXPECT_EQ(t.load(), 200);
}

TEST(team, members_work_at_the_same_time) {
  team crew(3, nullptr);
  std::atomic<int> there{0};
  // Would never end if one member's work began after another's end.
  crew.run([&](std::size_t) {
    ++there;
    for (patience p; there.load() != 3;) p.wait();
  });
  EXPECT_EQ(there.load(), 3);
}

TEST(team, a_round_lasts_as_long_as_its_slowest_member) {
  team crew(2, nullptr);
  const double seconds = crew.run([](std::size_t member) {
    if (member == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  });
  EXPECT_GE(seconds, 0.02);
}

TEST(team, a_member_that_throws_fails_the_team) {
  team crew(3, nullptr);
  crew.run([](std::size_t member) {
    if (member == 2) throw std::runtime_error("no memory for member 2");
  });
  EXPECT_TRUE(crew.failed());
  EXPECT_EQ(crew.failure(), "no memory for member 2");
}

std::atomic<int> initialised{0};

TEST(team, each_thread_is_initialised_once) {
  initialised = 0;
  team crew(4, [] { ++initialised; });
  crew.run([](std::size_t) {});
  crew.run([](std::size_t) {});
  EXPECT_EQ(initialised.load(), 4);
}

void* numbered(std::size_t i) { return reinterpret_cast<void*>(i + 1); }

TEST(ring, refuses_when_full_and_when_empty) {
  ring r;
  void* block = nullptr;
  EXPECT_FALSE(r.pop(block));
  for (std::size_t i = 0; i < ring::capacity; ++i) ASSERT_TRUE(r.push(numbered(i)));
  EXPECT_FALSE(r.push(numbered(0)));
  for (std::size_t i = 0; i < ring::capacity; ++i) {
    ASSERT_TRUE(r.pop(block));
    ASSERT_EQ(block, numbered(i));
  }
  EXPECT_FALSE(r.pop(block));
  EXPECT_TRUE(r.push(numbered(0)));
}

// Lengths that are no multiple of the batch, several times over: what is left unpublished must come through.
TEST(ring, passes_everything_in_order_between_two_threads) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{15}, std::size_t{257}, std::size_t{100003}}) {
    ring r;
    team crew(2, nullptr);
    std::size_t wrong = 0;
    for (int round = 0; round < 3; ++round) {
      crew.run([&](std::size_t member) {
        for (std::size_t i = 0; i < count; ++i) {
          if (member == 0) {
            for (patience p; !r.push(numbered(i));) p.wait();
          } else {
            void* block = nullptr;
            for (patience p; !r.pop(block);) p.wait();
            if (block != numbered(i)) ++wrong;
          }
        }
        if (member == 0) r.flush();
      });
    }
    EXPECT_EQ(wrong, 0U) << count;
  }
}

TEST(sizes, are_spread_evenly_over_the_logarithm) {
  const log_uniform_sizes<1024> table(256, 1 << 20);
  generator random(7);
  std::vector<int> doublings(12);
  constexpr int each = 10000;
  for (int i = 0; i < 12 * each; ++i) {
    const std::size_t bytes = table.at(random.next());
    ASSERT_GE(bytes, 256U);
    ASSERT_LE(bytes, std::size_t{1} << 20);
    std::size_t doubling = 0;
    while ((std::size_t{512} << doubling) <= bytes) ++doubling;
    ++doublings.at(doubling);
  }
  for (const int hits : doublings) EXPECT_NEAR(hits, each, 1000);
}

TEST(generator, slots_and_sizes_are_drawn_independently) {
  generator random(3);
  std::vector<int> seen(64);
  for (int i = 0; i < 64000; ++i) ++seen[random.next() % 64];
  EXPECT_GT(*std::min_element(seen.begin(), seen.end()), 850);
  EXPECT_LT(*std::max_element(seen.begin(), seen.end()), 1150);
}

}  // namespace
