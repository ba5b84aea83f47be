#include "cli/histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cli/random.hpp"

namespace weir::cli {
namespace {

TEST(histogram, buckets_cover_all_times_without_gap) {
  std::uint64_t expected = 0;
  for (std::size_t b = 0; b < 40 * histogram::steps; ++b) {
    EXPECT_EQ(histogram::first(b), expected) << b;
    EXPECT_EQ(histogram::bucket(histogram::first(b)), b);
    EXPECT_EQ(histogram::bucket(histogram::last(b)), b);
    expected = histogram::last(b) + 1;
  }
}

TEST(histogram, largest_time_fits) {
  histogram h;
  h.add(~std::uint64_t{0});
  EXPECT_EQ(h.max(), ~std::uint64_t{0});
  EXPECT_GE(h.percentile(1.0), ~std::uint64_t{0} / 32 * 31);
}

TEST(histogram, empty_has_no_percentile) {
  const histogram h;
  EXPECT_EQ(h.percentile(0.5), 0U);
  EXPECT_EQ(h.count(), 0U);
}

TEST(histogram, percentiles_near_the_exact_ones) {
  random_source random(7);
  histogram h;
  histogram half;
  std::vector<std::uint64_t> exact;
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t value = random.next() >> (20 + random.below(40));
    exact.push_back(value);
    (i % 2 == 0 ? h : half).add(value);
  }
  h.add(half);
  std::sort(exact.begin(), exact.end());
  ASSERT_EQ(h.count(), exact.size());
  EXPECT_EQ(h.max(), exact.back());
  for (const double p : {0.01, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto rank = static_cast<std::size_t>(p * static_cast<double>(exact.size())) - 1;
    const auto want = static_cast<double>(exact[rank]);
    EXPECT_NEAR(static_cast<double>(h.percentile(p)), want, want * 0.032 + 1) << p;
  }
}

}  // namespace
}  // namespace weir::cli
