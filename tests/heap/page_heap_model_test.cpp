// The same random steps on the page heap and on a plain list of pages that is searched from its start.

#include <gtest/gtest.h>

#include <vector>

#include "heap/dice.hpp"
#include "heap/page_heap_fixture.hpp"

namespace weir::heap {
namespace {

class reference {
 public:
  explicit reference(std::uint32_t pages) : free_(pages, false) {}

  [[nodiscard]] std::uint32_t first_fit(std::uint32_t pages, std::uint32_t alignment) const {
    std::uint32_t run = 0;
    for (std::uint32_t page = 0; page < free_.size(); ++page) {
      if (!free_[page]) {
        run = 0;
      } else if (run != 0 || page % alignment == 0) {
        ++run;
      }
      if (run >= pages) return page + 1 - run;
    }
    return no_page;
  }
  [[nodiscard]] bool all(std::uint32_t first, std::uint32_t pages, bool free) const {
    for (std::uint32_t i = 0; i < pages; ++i) {
      if (free_[first + i] != free) return false;
    }
    return true;
  }
  void set(std::uint32_t first, std::uint32_t pages, bool free) {
    for (std::uint32_t i = 0; i < pages; ++i) free_[first + i] = free;
    count_ += free ? pages : std::uint64_t{0} - pages;
  }
  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] std::uint32_t longest() const {
    std::uint32_t best = 0;
    std::uint32_t run = 0;
    for (const bool free : free_) {
      run = free ? run + 1 : 0;
      best = std::max(best, run);
    }
    return best;
  }
  [[nodiscard]] std::uint32_t below(std::uint32_t end) const {
    std::uint32_t count = 0;
    while (count < end && free_[end - count - 1]) ++count;
    return count;
  }

 private:
  std::vector<bool> free_;
  std::uint64_t count_ = 0;
};

struct run {
  std::uint32_t first;
  std::uint32_t pages;
};

class page_heap_model : public testing::TestWithParam<int> {
 protected:
  static constexpr std::uint32_t pages = 3 * page_bounds::group_pages;

  void claimed(std::uint32_t got, std::uint32_t expected, std::uint32_t count) {
    ASSERT_EQ(got, expected);
    if (got == no_page) return;
    plain.set(got, count, false);
    owned.push_back({got, count});
  }

  // Gives back a whole run, its beginning or its end.
  void give_back(dice& d) {
    run& r = owned[d.below(static_cast<std::uint32_t>(owned.size()))];
    const std::uint32_t count = d.chance(3) ? 1 + d.below(r.pages) : r.pages;
    const std::uint32_t first = d.chance(2) ? r.first : r.first + r.pages - count;
    h->release(first, count);
    plain.set(first, count, true);
    if (first == r.first) r.first += count;
    r.pages -= count;
    if (r.pages == 0) {
      r = owned.back();
      owned.pop_back();
    }
  }

  owned_page_heap<> h{pages};
  reference plain{pages};
  std::vector<run> owned{{0, pages}};  // never free so far
};

TEST_P(page_heap_model, agrees_at_every_step) {
  dice d(static_cast<std::uint64_t>(GetParam()));
  // Seeds differ in how large the runs are, so that words, groups and several groups all matter.
  const std::uint32_t largest = GetParam() % 3 == 0 ? 100 : GetParam() % 3 == 1 ? 1500 : 9000;
  for (int step = 0; step < 1500; ++step) {
    const std::uint32_t kind = d.below(10);
    const std::uint32_t count = d.skewed(1, largest);
    const std::uint32_t alignment = d.chance(3) ? 1u << d.below(13) : 1;
    if (kind < 4 && !owned.empty()) {
      give_back(d);
    } else if (kind < 8) {
      claimed(h->claim(count, alignment), plain.first_fit(count, alignment), count);
    } else if (kind < 9) {
      claimed(h->claim_thoroughly(count, alignment), plain.first_fit(count, alignment), count);
    } else {
      const std::uint32_t first = d.below(pages - count);
      const bool expected = plain.all(first, count, true);
      ASSERT_EQ(h->claim_at(first, count), expected);
      if (expected) claimed(first, first, count);
    }
    if (HasFatalFailure()) FAIL() << "step " << step;
    ASSERT_TRUE(h->bounds_hold()) << "step " << step;
    ASSERT_EQ(h->count_free(), plain.count()) << "step " << step;
    if (step % 16 != 0) continue;
    ASSERT_EQ(h->longest_free(), plain.longest()) << "step " << step;
    const std::uint32_t end = d.below(pages + 1);
    ASSERT_EQ(h->free_below(end, pages), plain.below(end)) << "step " << step;
  }
  while (!owned.empty()) give_back(d);
  EXPECT_EQ(h->claim(pages), 0u);
}

INSTANTIATE_TEST_SUITE_P(seeds, page_heap_model, testing::Range(1, 13));

}  // namespace
}  // namespace weir::heap
