// The small parts: table, bar, one-line messages, random numbers, faults, the ring between threads.

#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "cli/errors.hpp"
#include "cli/faults.hpp"
#include "cli/handoff_ring.hpp"
#include "cli/progress.hpp"
#include "cli/random.hpp"
#include "cli/stamp.hpp"
#include "cli/table.hpp"

namespace weir::cli {
namespace {

TEST(parts, table_aligns_columns) {
  table t({1});
  t.row({"name", "n", "note"});
  t.row({"a", "1,000", ""});
  EXPECT_EQ(t.text(), "name      n  note\na     1,000\n");
}

TEST(parts, progress_line) {
  EXPECT_EQ(progress::line("x", 0, 10), "x [" + std::string(40, '.') + "]   0 %");
  EXPECT_EQ(progress::line("x", 5, 10), "x [" + std::string(20, '#') + std::string(20, '.') + "]  50 %");
  EXPECT_EQ(progress::line("x", 10, 10), "x [" + std::string(40, '#') + "] 100 %");
  EXPECT_EQ(progress::line("x", 0, 0), "x [" + std::string(40, '#') + "] 100 %");
}

TEST(parts, messages_become_one_line) {
  EXPECT_EQ(one_line("a\nb\r\n\tc\x1b[0m\n"), "a b c [0m");
  EXPECT_EQ(one_line("plain"), "plain");
}

TEST(parts, random_numbers_repeat_and_stay_in_range) {
  random_source a(5);
  random_source b(5);
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t x = a.below(7);
    EXPECT_EQ(x, b.below(7));
    EXPECT_LT(x, 7U);
    seen.insert(x);
  }
  EXPECT_EQ(seen.size(), 7U);
}

TEST(parts, samples_reach_from_first_to_last_word) {
  for (const std::uint64_t words : {1ULL, 2ULL, 16ULL, 17ULL, 1000ULL, 1ULL << 40}) {
    const std::uint64_t count = sample_count(words);
    EXPECT_EQ(sample_at(words, 0), 0U);
    EXPECT_EQ(sample_at(words, count - 1), words - 1);
    for (std::uint64_t i = 1; i < count; ++i) EXPECT_LT(sample_at(words, i - 1), sample_at(words, i)) << words;
  }
}

TEST(parts, faults_of_many_threads_are_counted) {
  fault_list faults;
  EXPECT_FALSE(faults.any());
  std::thread other([&] {
    for (int i = 0; i < 100; ++i) faults.add("other");
  });
  for (int i = 0; i < 100; ++i) faults.add("one\nline");
  other.join();
  EXPECT_EQ(faults.count(), 200U);
  EXPECT_LT(faults.texts().size(), 200U);
}

TEST(parts, ring_keeps_order_and_says_when_it_is_drained) {
  handoff_ring<int, 8> ring;
  int out = 0;
  EXPECT_FALSE(ring.pop(out));
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(ring.push(i));
  EXPECT_FALSE(ring.push(8));
  EXPECT_TRUE(ring.pop(out));
  EXPECT_EQ(out, 0);
  std::thread producer([&] {
    for (int i = 8; i < 20000;) i += ring.push(i) ? 1 : 0;
    ring.close();
  });
  int expected = 1;
  while (!ring.drained()) {
    if (ring.pop(out)) {
      EXPECT_EQ(out, expected++);
    }
  }
  producer.join();
  EXPECT_EQ(expected, 20000);
}

}  // namespace
}  // namespace weir::cli
