// One lane under threads: refills, flushes, single blocks, large runs, bins emptied and spans released all at once. A
// shadow map has an owner for each granule.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "heap/dice.hpp"
#include "heap/lane_fixture.hpp"
#include "heap/team.hpp"

namespace weir::heap {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

class shadow {
 public:
  shadow(std::uint64_t base, std::size_t bytes)
      : base_(base), granules_(bytes / granule_bytes), of_(new owner[granules_]{}) {}

  void take(std::uint64_t at, std::size_t bytes, std::uint32_t who) { change(at, bytes, 0, who + 1); }
  void drop(std::uint64_t at, std::size_t bytes, std::uint32_t who) { change(at, bytes, who + 1, 0); }
  std::atomic<std::uint32_t> clashes{0};

 private:
  using owner = std::atomic<std::uint8_t>;

  void change(std::uint64_t at, std::size_t bytes, std::uint32_t from, std::uint32_t to) {
    if (at < base_ || at - base_ + bytes > granules_ * granule_bytes) {
      ++clashes;
      return;
    }
    const std::size_t first = (at - base_) / granule_bytes;
    const std::size_t last = (at - base_ + bytes - 1) / granule_bytes;
    for (std::size_t g = first; g <= last; ++g) {
      if (of_[g].exchange(static_cast<std::uint8_t>(to), std::memory_order_relaxed) != from) ++clashes;
    }
  }

  std::uint64_t base_;
  std::size_t granules_;
  std::unique_ptr<owner[]> of_;
};

struct block {
  std::uint64_t at;
  std::size_t bytes;
  std::uint32_t cls;
};

class lane_threads : public testing::TestWithParam<std::uint64_t> {
 protected:
  static constexpr std::size_t mapped = 48 * mib;

  void keep(std::vector<block>& mine, const void* p, std::size_t bytes, std::uint32_t cls, std::uint32_t who) {
    mine.push_back({number_of(p), bytes, cls});
    map.take(mine.back().at, bytes, who);
    // As the callers do.
    state_of(mine.back().at)
        ->store(static_cast<state_byte>((cls == class_count ? code_large : code_of(cls)) | live_bit));
    block_place place;
    if (!lane_heap::find(mine.back().at + bytes - 1, place) || place.base != mine.back().at || place.cls != cls) ++lost;
  }

  void free_last(std::vector<block>& mine, dice& d, std::uint32_t who) {
    if (mine.empty()) return;
    std::swap(mine.back(), mine[d.below(static_cast<std::uint32_t>(mine.size()))]);
    const block b = mine.back();
    mine.pop_back();
    map.drop(b.at, b.bytes, who);
    if (b.cls == class_count) {
      if (!lane->free_run(*find_slot(b.at), b.at)) ++lost;
      return;
    }
    state_of(b.at)->store(code_of(b.cls));
    if (d.chance(3)) return lane->give_block(*find_slot(b.at), b.at);
    // A magazine of all that this thread has of the class.
    std::vector<void*> full{reinterpret_cast<void*>(b.at)};
    for (std::size_t i = 0; i < mine.size() && full.size() < magazine::capacity;) {
      if (mine[i].cls != b.cls) {
        ++i;
        continue;
      }
      map.drop(mine[i].at, mine[i].bytes, who);
      state_of(mine[i].at)->store(code_of(b.cls));
      full.push_back(reinterpret_cast<void*>(mine[i].at));
      mine[i] = mine.back();
      mine.pop_back();
    }
    flush(lane.heap, b.cls, full);
  }

  void work(std::uint32_t who) {
    dice d(GetParam() * 64 + who);
    std::vector<block> mine;
    // Few classes, so that threads meet.
    constexpr std::uint32_t some[] = {0, 1, 7, 15, 24, 40, 55};
    for (std::uint32_t step = 0; step < 1000 * effort; ++step) {
      const std::uint32_t kind = d.below(100);
      if (kind < 35) {
        const std::uint32_t cls = some[d.below(7)];
        for (const void* p : refill(lane.heap, cls, 1 + d.below(30), d.chance(10))) {
          keep(mine, p, classes[cls].bytes, cls, who);
        }
      } else if (kind < 45) {
        const std::size_t bytes = (17 + d.skewed(0, 80)) * page_bytes;
        if (const void* p = lane->take_run(bytes, page_bytes << d.below(6), d.chance(10))) {
          keep(mine, p, bytes, class_count, who);
        }
      } else if (kind < 97) {
        free_last(mine, d, who);
      } else if (kind < 99) {
        lane->release_free_spans();
      } else {
        lane->empty_bins();
      }
      while (mine.size() > 300) free_last(mine, d, who);
    }
    while (!mine.empty()) free_last(mine, d, who);
  }

  mapped_lane lane{mapped};
  shadow map{lane.base, mapped};
  std::atomic<std::uint32_t> lost{0};
};

TEST_P(lane_threads, no_granule_has_two_owners_and_all_comes_back) {
  lane->bin_limit = GetParam();
  in_threads(4, [&](std::uint32_t who) { work(who); });
  EXPECT_EQ(map.clashes, 0u);
  EXPECT_EQ(lost, 0u);
  lane.expect_sound();
  lane.expect_all_free();
}

INSTANTIATE_TEST_SUITE_P(bin_limits, lane_threads, testing::Values(0, 100000, 32 * mib));

// Blocks made by some threads and freed by others.
TEST(lane_threads_handover, producers_and_consumers) {
  const mapped_lane lane(16 * mib);
  lane->bin_limit = mib;
  struct alignas(64) mailbox {
    std::atomic<std::uint64_t> block{0};
  };
  std::vector<mailbox> boxes(8);
  std::atomic<std::uint32_t> done{0};
  in_threads(4, [&](std::uint32_t who) {
    dice d(who);
    if (who < 2) {
      for (std::uint32_t step = 0; step < 3000 * effort; ++step) {
        for (const void* p : refill(lane.heap, 10, 1 + d.below(30))) {
          // Into any box; what was in it before goes back here.
          const std::uint64_t old = boxes[d.below(8)].block.exchange(number_of(p));
          if (old != 0) lane->give_block(*find_slot(old), old);
        }
      }
      ++done;
      return;
    }
    std::vector<void*> full;
    while (done < 2) {
      if (const std::uint64_t b = boxes[d.below(8)].block.exchange(0); b != 0)
        full.push_back(reinterpret_cast<void*>(b));
      if (full.size() < magazine::capacity) continue;
      flush(lane.heap, 10, full);
      full.clear();
    }
    flush(lane.heap, 10, full);
  });
  for (const mailbox& m : boxes) {
    if (const std::uint64_t b = m.block; b != 0) lane->give_block(*find_slot(b), b);
  }
  lane.expect_sound();
  lane.expect_all_free();
}

// Two threads free one run at the same instant: one of them is told.
TEST(lane_threads_misuse, one_of_two_frees_of_a_run_wins) {
  const mapped_lane lane(8 * mib);
  std::atomic<std::uint32_t> wins{0};
  std::barrier round(2);
  std::uint64_t run = 0;
  constexpr std::uint32_t rounds = 60 * effort;
  in_threads(2, [&](std::uint32_t who) {
    for (std::uint32_t i = 0; i < rounds; ++i) {
      if (who == 0) run = number_of(lane->take_run(3 * mib, 256, false));
      round.arrive_and_wait();
      if (lane->free_run(*find_slot(run), run)) ++wins;
      round.arrive_and_wait();
    }
  });
  EXPECT_EQ(wins, rounds);
  lane.expect_all_free();
}

}  // namespace
}  // namespace weir::heap
