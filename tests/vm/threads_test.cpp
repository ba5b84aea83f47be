// Growth, trim and pending memory from many threads at once, on the path and past it.

#include <random>

#include "heap/state.hpp"
#include "rig.hpp"

namespace weir::vm {
namespace {

using namespace testing;
using namespace std::chrono_literals;

/// Which pages of which lane are some thread's: two owners of one page are found at once.
class owners {
 public:
  void take(const lane_rig& l, std::uint64_t block, std::uint64_t bytes) { mark(l, block, bytes, false, true); }
  void leave(const lane_rig& l, std::uint64_t block, std::uint64_t bytes) { mark(l, block, bytes, true, false); }

 private:
  void mark(const lane_rig& l, std::uint64_t block, std::uint64_t bytes, bool from, bool to) {
    const std::uint32_t first = heap::lane_heap::page_of(*heap::find_slot(block), block);
    ASSERT_LE(first + heap::pages_for(bytes), pages);
    for (std::uint32_t i = 0; i < heap::pages_for(bytes); ++i) {
      ASSERT_EQ(pages_[l.lane.heap->number() % 8][first + i].exchange(to), from);
    }
  }
  static constexpr std::uint32_t pages = 16 * heap::pages_per_slot;
  std::vector<std::vector<std::atomic<bool>>> pages_ = [] {
    std::vector<std::vector<std::atomic<bool>>> all;
    for (int i = 0; i < 8; ++i) all.emplace_back(pages);
    return all;
  }();
};

void run(std::chrono::milliseconds patience, std::uint64_t limit, int rounds) {
  settings s;
  s.growth_patience = patience;
  s.limit = limit;
  rig r({}, s);
  constexpr int lane_count = 3;
  for (int i = 0; i < lane_count; ++i) r.lane();
  owners who;
  std::atomic<std::uint64_t> granted{0};
  std::atomic<std::uint64_t> overshoot{0};

  const auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    struct block {
      int lane;
      std::uint64_t at, bytes;
    };
    std::vector<block> mine;
    const auto drop = [&](std::size_t i) {
      const block b = mine[i];
      mine[i] = mine.back();
      mine.pop_back();
      lane_rig& own = *r.lanes[static_cast<std::size_t>(b.lane)];
      who.leave(own, b.at, b.bytes);
      r.machine->fill(own.lane.stream, reinterpret_cast<void*>(b.at + 64), 1, 64);
      auto& state = heap::find_slot(b.at)->states[heap::granule_in_slot(b.at)];
      const std::size_t where = random() % lane_count;
      lane_rig& in = *r.lanes[where];
      if (state.load() == (heap::code_used | heap::live_bit)) {
        state.store(heap::code_pending);
        ASSERT_TRUE(push_used(in.lane, b.at));
      } else if (&in == &own) {
        own.free(b.at);
      } else {
        r.machine->order(own.lane.stream, in.lane.stream);
        state.store(heap::code_pending);
        ASSERT_TRUE(push_pending(in.lane, b.at));
      }
    };
    for (int i = 0; i < rounds; ++i) {
      const unsigned what = mine.size() > 24 ? 7 : random() % 16;
      if (what < 7) {
        const int lane = static_cast<int>(random() % lane_count);
        const std::uint64_t bytes = (1 + random() % 64) * 128 * 1024;
        lane_rig& own = *r.lanes[static_cast<std::size_t>(lane)];
        const std::uint64_t p = own.allocate(bytes);
        if (r.device->reserved() > (limit != 0 ? limit : r.device->capacity())) overshoot.fetch_add(1);
        if (p == 0) continue;
        granted.fetch_add(1);
        who.take(own, p, bytes);
        ASSERT_TRUE(r.machine->accessible(0, reinterpret_cast<void*>(p), bytes));
        r.machine->fill(own.lane.stream, reinterpret_cast<void*>(p + bytes - 64), 2, 64);
        if (random() % 4 == 0) {
          const CUstream user = r.lanes[random() % lane_count]->lane.stream;
          r.machine->order(own.lane.stream, user);
          r.machine->fill(user, reinterpret_cast<void*>(p), 3, 64);
          ASSERT_EQ(record_use(*r.device, p, user), CUDA_SUCCESS);
        }
        mine.push_back({lane, p, bytes});
      } else if (what < 13) {
        if (!mine.empty()) drop(random() % mine.size());
      } else if (what < 14) {
        retire_free_chunks(r.lanes[random() % lane_count]->lane, (random() % 8) * 16 * MiB);
      } else if (what < 15) {
        collect(*r.device, nullptr);
      } else {
        finish_retiring(*r.device);
      }
    }
    while (!mine.empty()) drop(mine.size() - 1);
  };

  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) threads.emplace_back(work, t + 1);
  for (std::thread& t : threads) t.join();
  EXPECT_GT(granted, 0u);
  EXPECT_EQ(overshoot, 0u);  // B56

  r.machine->synchronize(0);
  for (int i = 0; i < 50 && pending(*r.device).blocks != 0; ++i) {
    collect(*r.device, nullptr);
    r.machine->synchronize(0);
  }
  EXPECT_EQ(pending(*r.device).blocks, 0u);
  EXPECT_EQ(pending(*r.device).bytes, 0u);
  std::uint64_t free_bytes = 0;
  for (const auto& l : r.lanes) {
    free_bytes += l->free_pages() << heap::page_shift;
    EXPECT_EQ(l->lane.heap->fault(), nullptr);
  }
  EXPECT_EQ(free_bytes + retiring_bytes(*r.device), r.device->reserved());
  EXPECT_EQ(r.device->reserved(), r.machine->reserved_bytes(0));
  for (int i = 0; i < 20 && r.device->reserved() != 0; ++i) {
    for (const auto& l : r.lanes) retire_free_chunks(l->lane, 0);
    r.machine->synchronize(0);
    finish_retiring(*r.device);
  }
  sim::live_counts left = r.machine->live();
  left.streams = 0;
  EXPECT_EQ(left, sim::live_counts{});  // C8
  EXPECT_EQ(r.faults(), "");
}

#if defined(__SANITIZE_THREAD__)
constexpr int rounds = 400;
#else
constexpr int rounds = 2000;
#endif

TEST(threads, on_the_path) { run(10s, 0, rounds); }
TEST(threads, past_the_path) { run(0ms, 0, rounds); }
TEST(threads, under_a_limit) { run(0ms, 96 * MiB, rounds); }

TEST(threads, a_limit_is_never_passed) {  // B56
  settings s;
  s.limit = 100 * MiB;
  s.growth_patience = 0ms;
  rig r({}, s);
  for (int i = 0; i < 4; ++i) r.lane();
  std::atomic<bool> go{false};
  std::atomic<std::uint64_t> granted{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      while (!go) std::this_thread::yield();
      for (int i = 0; i < 8; ++i) {
        if (r.lanes[static_cast<std::size_t>(t % 4)]->allocate(5 * MiB) != 0) granted.fetch_add(5 * MiB);
        EXPECT_LE(r.machine->reserved_bytes(0), 100 * MiB);
      }
    });
  }
  go = true;
  for (std::thread& t : threads) t.join();
  EXPECT_LE(granted, 100 * MiB);
  EXPECT_EQ(r.device->reserved(), r.machine->reserved_bytes(0));
  EXPECT_EQ(r.lanes[0]->allocate(200 * MiB), 0u);
  EXPECT_EQ(r.device->reserved(), r.machine->reserved_bytes(0));
}

}  // namespace
}  // namespace weir::vm
