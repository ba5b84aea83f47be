// Spans, their list and their pages under threads: no span is lost, none is released with a block out, no block has two
// owners.

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "heap/dice.hpp"
#include "heap/span.hpp"
#include "heap/tagged_stack.hpp"
#include "heap/team.hpp"

namespace weir::heap {
namespace {

class span_threads : public testing::TestWithParam<std::uint32_t> {
 protected:
  static constexpr std::uint32_t spans = 6;
  static constexpr std::uint32_t threads = 4;

  struct block {
    std::uint32_t in;
    std::uint32_t index;
  };

  auto next() {
    return [this](std::uint32_t i) -> std::atomic<std::uint32_t>& { return all[i].next; };
  }
  auto next_unmapped() {
    return [this](std::uint32_t i) -> std::atomic<std::uint32_t>& { return unmapped_links[i]; };
  }

  void end(std::uint32_t i) {
    if (all[i].close()) listed.push(i, next());
  }

  // As a refill: a listed span, else a new one from the "page heap".
  void refill(dice& d, std::vector<block>& mine) {
    std::uint32_t i = listed.pop(next());
    if (i != listed.none) {
      all[i].own();
    } else {
      i = unmapped.pop(next_unmapped());
      if (i == unmapped.none) return;
      all[i].open(i, 0, GetParam());
    }
    all[i].take(1 + d.below(4), [&](std::uint32_t b) {
      if (owner[i][b].exchange(1) != 0) ++clashes;
      mine.push_back({i, b});
    });
    end(i);
  }

  void give(const block& b) {
    if (owner[b.in][b.index].exchange(0) != 1) ++clashes;
    if (all[b.in].give(b.index)) listed.push(b.in, next());
  }

  void sweep() {
    const std::uint32_t i = listed.pop(next());
    if (i == listed.none) return;
    all[i].own();
    if (!all[i].release()) return end(i);
    for (std::uint32_t b = 0; b < GetParam(); ++b) {
      if (owner[i][b].load() != 0) ++clashes;  // released with a block out
    }
    unmapped.push(i, next_unmapped());
  }

  std::array<span<>, spans> all{};
  std::array<std::atomic<std::uint32_t>, spans> unmapped_links{};
  std::array<std::array<std::atomic<int>, 256>, spans> owner{};
  tagged_stack<> listed;
  tagged_stack<> unmapped;
  std::atomic<std::uint32_t> clashes{0};
};

TEST_P(span_threads, nothing_is_lost_or_handed_out_twice) {
  for (std::uint32_t i = 0; i < spans; ++i) unmapped.push(i, next_unmapped());
  in_threads(threads, [&](std::uint32_t who) {
    dice d(who + GetParam() * 8);
    std::vector<block> mine;
    for (std::uint32_t step = 0; step < 8000 * effort; ++step) {
      const std::uint32_t kind = d.below(8);
      if (kind < 3) {
        refill(d, mine);
      } else if (kind < 7) {
        // Whole bursts, so that spans run full and empty.
        for (std::uint32_t n = d.below(8); n-- > 0 && !mine.empty();) {
          give(mine.back());
          mine.pop_back();
        }
      } else {
        sweep();
      }
    }
    for (const block& b : mine) give(b);
  });
  EXPECT_EQ(clashes, 0u);
  std::uint32_t found = 0;
  for (std::uint32_t i = listed.pop(next()); i != listed.none; i = listed.pop(next()), ++found) {
    EXPECT_EQ(all[i].free_blocks(), GetParam());
    all[i].own();
    EXPECT_TRUE(all[i].release());
  }
  for (std::uint32_t i = unmapped.pop(next_unmapped()); i != unmapped.none; i = unmapped.pop(next_unmapped())) ++found;
  EXPECT_EQ(found, spans);
}

INSTANTIATE_TEST_SUITE_P(blocks, span_threads, testing::Values(1u, 2u, 4u, 65u, 256u));

}  // namespace
}  // namespace weir::heap
