// What a thorough search promises: "none" was true at one moment, but for claims in flight. Each test steps in at a
// chosen instruction of the search.

#include <gtest/gtest.h>

#include <semaphore>
#include <thread>

#include "heap/page_heap_fixture.hpp"
#include "heap/watched_atom.hpp"

namespace weir::heap {
namespace {

constexpr std::uint32_t group = page_bounds::group_pages;
using watched_heap = owned_page_heap<watched_atom>;

// Runs `then` once, before the thread first touches `at`.
auto once_before(const void* at, std::function<void()> then) {
  return [at, then = std::move(then), done = false](const void* touched) mutable {
    if (touched != at || done) return;
    done = true;
    then();
  };
}

TEST(page_heap_thorough, a_run_freed_behind_the_search_while_one_before_it_is_claimed_is_found) {
  watched_heap h(group);
  h->release(128, 8);
  std::uint32_t got = no_page;
  {
    // The search has passed word 0. At every moment 8 pages are free: first those of word 2, then those of word 0.
    const watch w(once_before(&h.bits[1], [&] {
      h->release(0, 8);
      ASSERT_TRUE(h->claim_at(128, 8));
    }));
    got = h->claim_thoroughly(8);
  }
  EXPECT_EQ(got, 0u);
}

TEST(page_heap_thorough, a_run_hidden_by_a_claim_that_is_given_back_is_found) {
  watched_heap h(group);
  h->release(0, 100);  // word 0 is free, word 1 in part
  std::binary_semaphore stopped(0);
  std::binary_semaphore go(0);
  // Claims 128 pages: takes word 0, is stopped before word 1, and will give word 0 back.
  std::thread large([&] {
    const watch w(once_before(&h.bits[1], [&] {
      stopped.release();
      go.acquire();
    }));
    EXPECT_FALSE(h->claim_at(0, 128));
  });
  stopped.acquire();
  EXPECT_EQ(h->count_free(0, 64), 0u);
  std::uint32_t got = no_page;
  {
    // The search for 64 pages sees them taken in its first pass; the claim ends during the second.
    int passes = 0;
    const watch w([&](const void* touched) {
      if (touched == &h.bits[0] && ++passes == 2) {
        go.release();
        large.join();
      }
    });
    got = h->claim_thoroughly(64);
  }
  EXPECT_EQ(got, 0u);
}

TEST(page_heap_thorough, a_stopped_claim_does_not_hold_the_search_up_for_good) {
  watched_heap h(group);
  h->release(0, 100);
  bool looked = false;
  const watch w(once_before(&h.bits[1], [&] {
    looked = true;
    EXPECT_EQ(h->claim_thoroughly(64), no_page);  // what it misses is held by the stopped claim
    EXPECT_EQ(h->claim_thoroughly(36), 64u);
  }));
  EXPECT_FALSE(h->claim_at(0, 128));
  EXPECT_TRUE(looked);
}

TEST(page_heap_thorough, a_release_between_its_two_steps_is_found) {
  watched_heap h(group);
  bool looked = false;
  {
    // The bits are set, the bounds not raised.
    const watch w(once_before(&h.bounds[0], [&] {
      looked = true;
      EXPECT_EQ(h->claim(8), no_page);
      EXPECT_EQ(h->claim_thoroughly(8), 16u);
    }));
    h->release(16, 8);
  }
  EXPECT_TRUE(looked);
}

// A search that found nothing may not lower a bound that was raised after it looked (m_summary).
TEST(page_heap_thorough, lowering_loses_against_a_release_since) {
  watched_heap h(group);
  h->release(0, 64);
  ASSERT_TRUE(h->claim_at(0, 1));
  int touched_bounds = 0;
  {
    // Touches: promise, (search), version, (measure), lowering.
    const watch w([&](const void* touched) {
      if (touched == &h.bounds[0] && ++touched_bounds == 3) h->release(64, 8);
    });
    EXPECT_EQ(h->claim(64), no_page);
  }
  ASSERT_GE(touched_bounds, 3);
  EXPECT_TRUE(h->bounds_hold());
  EXPECT_EQ(h->claim(71), 1u);
}

}  // namespace
}  // namespace weir::heap
