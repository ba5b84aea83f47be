// Threads that come and go (C12, C13).

#include <algorithm>
#include <mutex>

#include "heap/dice.hpp"
#include "stress/team.hpp"
#include "support/rig.hpp"

namespace weir::test {
namespace {

struct parcel {
  void* at = nullptr;
  std::size_t bytes = 0;
};

// Blocks that outlive the threads that allocated them.
class mailbox {
 public:
  void put(parcel p) {
    const std::lock_guard lock(mutex_);
    parcels_.push_back(p);
  }
  bool get(parcel& p) {
    const std::lock_guard lock(mutex_);
    if (parcels_.empty()) return false;
    p = parcels_.back();
    parcels_.pop_back();
    return true;
  }

 private:
  std::mutex mutex_;
  std::vector<parcel> parcels_;
};

TEST(threads, ten_thousand_come_and_go_and_memory_stays_bounded) {
  rig r;
  weir::lane lanes[] = {r.lane(0), r.lane(0), r.lane(1)};
  owners map;
  mailbox left;
  const auto one_life = [&](std::uint64_t seed) {
    heap::dice dice(seed);
    std::vector<parcel> mine;
    for (int i = 0; i < 20; ++i) {
      parcel p;
      p.bytes = 1 + dice.skewed(0, 100000);
      p.at = lanes[dice.below(3)].allocate(p.bytes);
      map.take(p.at, p.bytes);
      mine.push_back(p);
    }
    const auto free = [&](const parcel& p) {
      map.give(p.at, p.bytes);
      weir::deallocate(p.at);
    };
    for (parcel p; mine.size() > 2; mine.pop_back()) {
      free(mine.back());
      if (dice.chance(10) && left.get(p)) free(p);
    }
    // Two are left to others, two of others are taken.
    for (const parcel& p : mine) left.put(p);
    for (parcel p; !mine.empty() && left.get(p); mine.pop_back()) free(p);
  };

  constexpr int together = 20;
  constexpr int batches = 10000 / together;
  std::uint64_t metadata = 0;
  std::uint64_t reserved = 0;
  for (int b = 0; b < batches; ++b) {
    in_threads(together,
               [&](int i) { one_life(static_cast<std::uint64_t>(b) * together + static_cast<std::uint64_t>(i)); });
    if (b != batches / 10) continue;
    const device_statistics s = r.service->statistics().total();
    metadata = s.metadata;
    reserved = s.reserved;
  }
  const weir::statistics end = r.service->statistics();
  // Caches of the dead are adopted: no more of them than threads at one time, and a few for those that came to see an
  // empty stack for a moment. (Left behind, 9,000 of them would hold 70 MiB at least.)
  EXPECT_LE(end.total().metadata, metadata + 16 * mib);
  EXPECT_LE(end.total().reserved, reserved * 3 / 2 + 64 * mib);
  EXPECT_LE(end.threads, 2u) << "dead threads are counted";
  EXPECT_EQ(map.clashes(), 0u);
  for (parcel p; left.get(p);) weir::deallocate(p.at);
}

TEST(threads, what_a_dead_thread_cached_serves_the_next) {
  config c = quiet();
  c.maintenance = false;
  rig r(c);
  weir::lane l = r.lane();
  std::uint64_t reserved = 0;
  for (int i = 0; i < 50; ++i) {
    std::thread([&] {
      std::vector<void*> blocks;
      for (int k = 0; k < 100; ++k) blocks.push_back(l.allocate(40000));
      for (void* p : blocks) l.deallocate(p);
    }).join();
    if (i == 0) reserved = r.statistics().reserved;
    ASSERT_EQ(r.statistics().reserved, reserved) << "after " << i + 1 << " threads";
  }
}

TEST(threads, case_B03_contended_lists_never_give_a_block_twice) {
  // One size, few blocks, no thread caches: every call goes to the lists that all threads share.
  for (const std::uint64_t bin_bytes : {std::uint64_t{0}, std::uint64_t{4} << 20}) {
    config c = quiet();
    c.thread_cache = 0;
    c.lane_cache = bin_bytes;
    rig r(c);
    weir::lane l = r.lane();
    owners map;
    constexpr std::size_t bytes = 300 * kib;
    in_threads(8, [&](int i) {
      heap::dice dice(static_cast<std::uint64_t>(i));
      for (int k = 0; k < 5000 * effort; ++k) {
        void* p = l.allocate(bytes);
        map.take(p, bytes);
        if (dice.chance(4)) std::this_thread::yield();
        map.give(p, bytes);
        l.deallocate(p);
      }
    });
    EXPECT_EQ(map.clashes(), 0u);
    EXPECT_EQ(r.statistics().live, 0u);
  }
}

TEST(threads, case_B03_caches_of_dead_threads_are_adopted_once) {
  rig r;
  weir::lane l = r.lane();
  owners map;
  std::atomic<int> next{0};
  // Eight lines of short-lived threads, each adopting what some other left.
  in_threads(8, [&](int) {
    while (next.fetch_add(1) < 400 * effort) {
      std::thread([&] {
        void* blocks[30];
        for (void*& p : blocks) {
          p = l.allocate(700);
          map.take(p, 700);
        }
        for (void* p : blocks) {
          map.give(p, 700);
          l.deallocate(p);
        }
      }).join();
    }
  });
  EXPECT_EQ(map.clashes(), 0u);
}

}  // namespace
}  // namespace weir::test
