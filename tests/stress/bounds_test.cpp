// Bounds and books under threads: cases B11, B20, B56, B64.

#include <condition_variable>
#include <deque>
#include <mutex>

#include "cache/thread_cache.hpp"
#include "coordinator/lane_directory.hpp"
#include "heap/dice.hpp"
#include "stress/team.hpp"
#include "support/rig.hpp"

namespace weir::test {
namespace {

// Blocks on their way from threads that allocate to threads that free.
class channel {
 public:
  explicit channel(std::size_t room) : room_(room) {}
  void send(void* p) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return blocks_.size() < room_; });
    blocks_.push_back(p);
    changed_.notify_all();
  }
  /// Null: closed and empty.
  void* receive() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !blocks_.empty() || closed_; });
    if (blocks_.empty()) return nullptr;
    void* p = blocks_.front();
    blocks_.pop_front();
    changed_.notify_all();
    return p;
  }
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  const std::size_t room_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<void*> blocks_;
  bool closed_ = false;
};

TEST(bounds, case_B11_a_thread_that_only_frees_does_not_make_memory_grow) {
  config c = quiet();
  c.thread_cache = mib;
  c.lane_cache = 2 * mib;
  rig r(c);
  weir::lane l = r.lane();
  constexpr int producers = 4;
  constexpr std::size_t block = 6000;
  constexpr std::size_t set = 16 * mib / block;  // blocks that each producer keeps
  channel to_free(256);
  std::atomic<std::uint64_t> most{0};
  std::thread consumer([&] {
    while (void* p = to_free.receive()) weir::deallocate(p);
  });
  in_threads(producers, [&](int i) {
    heap::dice dice(static_cast<std::uint64_t>(i));
    std::vector<void*> mine(set);
    for (void*& p : mine) p = l.allocate(block);
    for (int k = 0; k < 15000 * effort; ++k) {
      void*& p = mine[dice.below(static_cast<std::uint32_t>(set))];
      to_free.send(p);
      p = l.allocate(block);
    }
    most = std::max(most.load(), r.statistics().reserved);
    for (void* p : mine) to_free.send(p);
  });
  to_free.close();
  consumer.join();
  // The live set in its class's blocks, what is on its way, each thread's cache, the bins, and one growth of slack.
  const std::uint64_t live = producers * 16 * mib * 9 / 8 + 256 * 2 * block;
  EXPECT_LE(most, live + (producers + 1) * c.thread_cache + c.lane_cache + 24 * mib);
  EXPECT_EQ(r.statistics().live, 0u);
}

TEST(bounds, case_B20_counters_do_not_drift_when_others_free) {
  rig r;
  weir::lane l = r.lane();
  constexpr std::size_t block = 2000;
  constexpr std::size_t room = 100;
  channel across(room);
  std::atomic<bool> over{false};
  std::mutex exit_mutex;
  std::thread producer([&] {
    for (int i = 0; i < 60000 * effort; ++i) across.send(l.allocate(block));
    across.close();
  });
  std::unique_lock stay(exit_mutex);
  std::thread consumer([&] {
    l.deallocate(l.allocate(block));
    while (void* p = across.receive()) l.deallocate(p);
    over = true;
    const std::lock_guard wait(exit_mutex);  // it stays alive while the counters are read
  });
  std::uint64_t allocations = 0;
  while (!over) {
    const weir::statistics s = r.service->statistics();
    const device_statistics& d = s.devices[0];
    ASSERT_LE(d.live, (room + 4) * 2048) << "more than is on its way";
    ASSERT_LE(d.asked, d.live + 4 * 2048);
    ASSERT_GE(d.allocations, allocations) << "a count went back";
    ASSERT_LE(d.frees, d.allocations) << "a count wrapped";
    ASSERT_LT(d.cached, gib);
    ASSERT_EQ(s.total().live, d.live + s.devices[1].live);
    allocations = d.allocations;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const device_statistics before = r.statistics();
  EXPECT_EQ(before.live, 0u);
  stay.unlock();
  producer.join();
  consumer.join();
  const device_statistics after = r.statistics();
  EXPECT_EQ(after.live, 0u);
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_EQ(after.frees, before.frees);
  EXPECT_EQ(sum_of_parts(after), after.reserved);
}

TEST(bounds, case_B56_the_limit_is_never_passed_and_refusals_cost_nothing) {
  constexpr std::uint64_t limit = 400 * mib;
  config c = quiet();
  c.chunk_size = 2 * mib;
  c.oom_wait = std::chrono::milliseconds(10);
  rig r(c);
  r.service->limit(0, limit);
  r.service->limit(1, limit / 2);
  EXPECT_EQ(r.service->limit(0), limit);
  weir::lane l = r.lane(0);
  weir::lane m = r.lane(1);
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> most{0};
  std::thread watch([&] {
    while (!over) {
      most = std::max(most.load(), r.machine->reserved_bytes(0));
      std::this_thread::yield();
    }
  });
  for (int round = 0; round < 5; ++round) {
    std::mutex mutex;
    std::vector<void*> granted;
    in_threads(32, [&](int) {
      void* p = l.try_allocate(limit / 20);
      if (p == nullptr) return;
      const std::lock_guard lock(mutex);
      granted.push_back(p);
    });
    EXPECT_EQ(granted.size(), 20u) << "as many as fit, and no more";
    const std::uint64_t reserved = r.statistics().reserved;
    EXPECT_EQ(l.try_allocate(2 * limit), nullptr);
    EXPECT_EQ(r.statistics().reserved, reserved);
    l.deallocate(granted.back());
    granted.pop_back();
    void* small = l.try_allocate(limit / 100);
    EXPECT_NE(small, nullptr);
    l.deallocate(small);
    for (void* p : granted) l.deallocate(p);
    r.service->trim(0);
    // A creation that fails after the charge.
    r.machine->fail("cuMemCreate", 1, sim::result::out_of_memory, 1000, 0);
    EXPECT_EQ(l.try_allocate(limit / 20), nullptr);
    r.machine->clear_failures();
    EXPECT_EQ(r.statistics().reserved, r.machine->reserved_bytes(0));
    EXPECT_EQ(r.statistics(1).reserved, 0u);
  }
  over = true;
  watch.join();
  EXPECT_LE(most, limit);
  void* other = m.try_allocate(limit / 4);
  EXPECT_NE(other, nullptr);
  EXPECT_EQ(m.try_allocate(limit / 2), nullptr);
  m.deallocate(other);
}

TEST(bounds, a_limit_below_what_is_held_stops_growth_only) {
  rig r;
  weir::lane l = r.lane();
  void* p = l.allocate(100 * mib);
  void* q = l.allocate(3 * mib);
  l.deallocate(q);
  r.service->limit(0, 10 * mib);
  q = l.try_allocate(3 * mib);
  EXPECT_NE(q, nullptr) << "what is there still serves";
  EXPECT_EQ(l.try_allocate(200 * mib), nullptr);
  r.service->limit(0, 0);
  void* big = l.try_allocate(200 * mib);
  EXPECT_NE(big, nullptr);
  for (void* b : {p, q, big}) l.deallocate(b);
}

TEST(bounds, case_B64_idle_threads_keep_little_and_give_it_up) {
  constexpr int count = 100;
  config c = quiet();
  c.thread_cache = 256 * kib;
  c.lane_cache = 4 * mib;
  c.maintenance = false;
  rig r(c);
  weir::lane l = r.lane();
  std::barrier filled(count + 1);
  std::barrier done(count + 1);
  std::vector<std::jthread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      heap::dice dice(static_cast<std::uint64_t>(i));
      for (int round = 0; round < 20; ++round) {
        std::vector<void*> blocks;
        for (int k = 0; k < 30; ++k) blocks.push_back(l.allocate(1 + dice.below(20000)));
        for (void* p : blocks) l.deallocate(p);
      }
      filled.arrive_and_wait();  // idle from here on
      done.arrive_and_wait();
    });
  }
  filled.arrive_and_wait();
  EXPECT_EQ(r.statistics().live, 0u);
  EXPECT_GE(r.service->statistics().threads, static_cast<std::uint64_t>(count));
  // All are asleep and hold caches; a trim from outside takes them.
  r.service->trim();
  EXPECT_TRUE(eventually([&] {
    r.service->trim();
    return r.statistics().reserved == 0;
  })) << r.statistics().cached
      << " bytes stay cached";
  done.arrive_and_wait();
}

// Bytes in all threads' caches of all lanes.
std::uint64_t in_thread_caches() {
  std::uint64_t sum = 0;
  for (std::uint32_t n = 1; n <= coordinator::lanes_made(); ++n) {
    cache::for_each_cache(n, [&](const cache::lane_cache& c) { sum += c.cached_bytes(); });
  }
  return sum;
}

TEST(bounds, case_B64_idle_caches_are_drained_by_the_maintenance_thread) {
  config c = quiet();
  c.idle_after = std::chrono::milliseconds(500);
  c.limit = 64 * mib;
  c.oom_wait = std::chrono::milliseconds(0);
  rig r(c);
  weir::lane l = r.lane();
  std::barrier filled(2);
  std::barrier done(2);
  std::jthread idle([&] {
    std::vector<void*> blocks;
    for (int k = 0; k < 50; ++k) blocks.push_back(l.allocate(mib));
    for (void* p : blocks) l.deallocate(p);
    filled.arrive_and_wait();
    done.arrive_and_wait();
  });
  filled.arrive_and_wait();
  EXPECT_GT(in_thread_caches(), 0u);
  EXPECT_TRUE(eventually([&] { return in_thread_caches() == 0; })) << in_thread_caches() << " bytes stay in its cache";
  done.arrive_and_wait();
}

}  // namespace
}  // namespace weir::test
