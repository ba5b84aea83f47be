// Many threads on many lanes at once, with trims, looks and pressure from outside.

#include <algorithm>
#include <chrono>

#include "heap/dice.hpp"
#include "stress/team.hpp"
#include "support/rig.hpp"

namespace weir::test {
namespace {

using clock = std::chrono::steady_clock;

struct held_block {
  void* at = nullptr;
  std::size_t bytes = 0;
};

std::size_t random_size(heap::dice& dice) {
  switch (dice.below(8)) {
    case 0:
      return mib + 1 + dice.below(4u << 20);
    case 1:
      return 1 + dice.below(600000);
    default:
      return 1 + dice.skewed(0, 20000);
  }
}

// One thread's life: allocates, frees on its own lane, on others, by the free function.
void churn(std::vector<weir::lane>& lanes, std::uint64_t seed, clock::time_point until, owners& map,
           std::atomic<std::uint64_t>& refused, weir::service* uses, const std::vector<stream_t>& streams) {
  heap::dice dice(seed);
  std::vector<held_block> held(40);
  const auto free = [&](held_block& b) {
    map.give(b.at, b.bytes);
    if (dice.chance(3)) {
      lanes[dice.below(static_cast<std::uint32_t>(lanes.size()))].deallocate(b.at);
    } else {
      weir::deallocate(b.at);
    }
    b.at = nullptr;
  };
  for (int step = 0; step % 64 != 0 || clock::now() < until; ++step) {
    held_block& b = held[dice.below(static_cast<std::uint32_t>(held.size()))];
    if (b.at != nullptr) {
      free(b);
      continue;
    }
    b.bytes = random_size(dice);
    weir::lane& l = lanes[dice.below(static_cast<std::uint32_t>(lanes.size()))];
    b.at = l.try_allocate(b.bytes);
    if (b.at == nullptr) {
      refused.fetch_add(1);
      continue;
    }
    map.take(b.at, b.bytes);
    if (uses != nullptr && dice.chance(50)) {
      uses->record_use(b.at, streams[dice.below(static_cast<std::uint32_t>(streams.size()))]);
    }
  }
  for (held_block& b : held) {
    if (b.at != nullptr) free(b);
  }
}

struct scene {
  const char* name;
  std::uint64_t limit;
  bool hardened;
  bool maintenance;
  bool uses;
  bool trims;
  friend std::ostream& operator<<(std::ostream& out, const scene& s) { return out << s.name; }
};

class mixed : public testing::TestWithParam<scene> {};

TEST_P(mixed, nothing_overlaps_and_the_books_balance) {
  const scene& s = GetParam();
  config c = quiet();
  c.limit = s.limit;
  c.hardened = s.hardened;
  c.maintenance = s.maintenance;
  c.chunk_size = s.limit != 0 ? 2 * mib : 0;
  c.oom_wait = std::chrono::milliseconds(5);
  c.idle_after = std::chrono::milliseconds(10);
  rig r(c, devices(1));
  std::vector<stream_t> streams;
  std::vector<weir::lane> lanes;
  for (int i = 0; i < 3; ++i) {
    streams.push_back(r.stream());
    lanes.push_back(r.service->lane(0, streams.back()));
  }
  owners map;
  std::atomic<std::uint64_t> refused{0};
  std::atomic<bool> over{false};
  std::thread outside([&] {
    while (!over) {
      if (s.trims) r.service->trim(0, 8 * mib);
      r.service->collect();
      const device_statistics d = r.statistics();
      EXPECT_LE(d.frees, d.allocations);
      EXPECT_LE(r.machine->reserved_bytes(0), s.limit != 0 ? s.limit : 4 * gib);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  const auto until = clock::now() + std::chrono::milliseconds(1500);
  in_threads(6, [&](int i) {
    churn(lanes, static_cast<std::uint64_t>(i), until, map, refused, s.uses ? r.service.get() : nullptr, streams);
  });
  over = true;
  outside.join();
  EXPECT_EQ(map.clashes(), 0u);
  EXPECT_TRUE(s.limit != 0 || refused == 0) << refused << " requests were refused without a limit";
  r.synchronize();
  EXPECT_TRUE(eventually([&] {
    r.service->collect();
    return r.statistics().pending == 0;
  }));
}

INSTANTIATE_TEST_SUITE_P(scenes, mixed,
                         testing::Values(scene{"plain", 0, false, true, false, false},
                                         scene{"hardened", 0, true, true, false, false},
                                         scene{"trimmed", 0, false, true, false, true},
                                         scene{"used_elsewhere", 0, false, true, true, false},
                                         scene{"short_of_memory", 48 * mib, false, true, false, false},
                                         scene{"all_of_it", 48 * mib, true, true, true, true},
                                         scene{"no_maintenance", 48 * mib, false, false, true, true}),
                         [](const auto& made) { return std::string(made.param.name); });

TEST(races, two_frees_of_one_block_at_one_instant_are_told_apart_when_hardened) {
  config c = quiet();
  c.hardened = true;
  rig r(c);
  weir::lane l = r.lane();
  constexpr int rounds = 1500 * effort;
  for (const std::size_t bytes : {std::size_t{1000}, 3 * mib}) {
    std::vector<void*> blocks(rounds);
    for (void*& p : blocks) p = bytes < mib || &p < &blocks[200] ? l.allocate(bytes) : nullptr;
    std::barrier both(2);
    in_threads(2, [&](int) {
      for (void* p : blocks) {
        if (p == nullptr) break;
        both.arrive_and_wait();
        l.deallocate(p);
      }
    });
    const auto expected =
        static_cast<std::size_t>(std::count_if(blocks.begin(), blocks.end(), [](void* p) { return p; }));
    EXPECT_EQ(r.misuses().size(), expected) << "one of the two frees of each block is a misuse";
    EXPECT_EQ(r.statistics().live, 0u);
  }
}

TEST(races, case_B66_slow_driver_calls_of_one_device_hold_up_no_hit) {
  rig r(quiet(), devices(4));
  std::vector<weir::lane> lanes;
  for (int d = 0; d < 4; ++d) lanes.push_back(r.lane(d));
  for (weir::lane& l : lanes) l.deallocate(l.allocate(8 * mib));
  for (const char* call : {"cuMemCreate", "cuMemMap", "cuMemSetAccess"}) {
    r.machine->set_cost(call, std::chrono::milliseconds(50), 0);
  }
  std::atomic<bool> growing{true};
  std::thread slow([&] {
    weir::lane own = r.lane(0);
    const auto start = clock::now();
    for (int i = 0; i < 3; ++i) own.deallocate(own.allocate(static_cast<std::size_t>(i + 1) * 30 * mib));
    EXPECT_GE(clock::now() - start, std::chrono::milliseconds(300)) << "the calls were to be slow";
    growing = false;
  });
  std::atomic<std::uint64_t> hits{0};
  std::atomic<std::uint64_t> late{0};
  in_threads(8, [&](int i) {
    weir::lane l = lanes[static_cast<std::size_t>(i % 4)];  // device 0 too
    while (growing) {
      const auto start = clock::now();
      for (int k = 0; k < 10; ++k) {
        void* p = l.allocate(5000);
        block_info found;
        EXPECT_TRUE(r.service->query(p, found));
        l.deallocate(p);
      }
      hits.fetch_add(1);
      if (clock::now() - start > std::chrono::milliseconds(40)) late.fetch_add(1);
    }
  });
  slow.join();
  // Waiting for the driver would make every hit late. A busy machine makes some.
  EXPECT_GT(hits, 500u);
  EXPECT_LE(late, hits / 20);
}

}  // namespace
}  // namespace weir::test
