// The maintenance path: one at a time as a rule, never a lock.

#include <condition_variable>
#include <mutex>

#include "rig.hpp"

namespace weir::vm {
namespace {

using namespace testing;
using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

TEST(path, one_at_a_time) {
  maintenance_path path;
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        const maintenance_path::pass pass = path.enter(60s);
        EXPECT_FALSE(pass.took_over());
        const int now = inside.fetch_add(1) + 1;
        if (now > most) most = now;
        if (i % 16 == 0) std::this_thread::yield();
        inside.fetch_sub(1);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(most, 1);
  EXPECT_FALSE(path.busy());
}

TEST(path, a_holder_that_stopped_is_waited_for_only_so_long) {
  maintenance_path path;
  std::unique_ptr<maintenance_path::pass> stopped(new maintenance_path::pass(path.enter(0ms)));
  const auto start = clock::now();
  {
    const maintenance_path::pass pass = path.enter(30ms);
    EXPECT_TRUE(pass.took_over());
    EXPECT_GE(clock::now() - start, 30ms);
    // The path is this thread's now: the old holder's leaving changes nothing.
    stopped.reset();
    EXPECT_TRUE(path.busy());
  }
  EXPECT_FALSE(path.busy());
  EXPECT_FALSE(path.enter(0ms).took_over());
}

TEST(path, sleepers_are_woken_one_after_the_other) {
  maintenance_path path;
  std::unique_ptr<maintenance_path::pass> holder(new maintenance_path::pass(path.enter(0ms)));
  std::atomic<int> through{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      const maintenance_path::pass pass = path.enter(60s);
      EXPECT_FALSE(pass.took_over());
      through.fetch_add(1);
    });
  }
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(through, 0);
  const auto start = clock::now();
  holder.reset();
  for (std::thread& t : threads) t.join();
  EXPECT_LT(clock::now() - start, 30s);
}

/// A driver whose next cuMemCreate stops its thread until it is let go.
struct stopping {
  static inline std::mutex lock;
  static inline std::condition_variable changed;
  static inline bool armed = false;
  static inline bool stopped = false;
  static inline const driver::table* real = nullptr;

  static CUresult CUDAAPI create(CUmemGenericAllocationHandle* handle, std::size_t size,
                                 const CUmemAllocationProp* prop, unsigned long long flags) {
    {
      std::unique_lock held(lock);
      if (armed) {
        armed = false;
        stopped = true;
        changed.notify_all();
        changed.wait(held, [] { return !stopped; });
      }
    }
    return real->cuMemCreate(handle, size, prop, flags);
  }
  static void arm() {
    const std::lock_guard held(lock);
    armed = true;
  }
  static void wait_until_stopped() {
    std::unique_lock held(lock);
    changed.wait(held, [] { return stopped; });
  }
  static void let_go() {
    const std::lock_guard held(lock);
    stopped = false;
    changed.notify_all();
  }
};

TEST(path, a_thread_stopped_inside_the_driver_stops_nobody_else) {  // C3
  rig r;
  driver::table table = r.machine->table();
  stopping::real = &r.machine->table();
  table.cuMemCreate = &stopping::create;
  settings s;
  s.growth_patience = 20ms;
  std::vector<std::unique_ptr<lane_rig>> lanes;
  vm::device d(table, 0, s);
  for (int i = 0; i < 2; ++i) lanes.push_back(std::make_unique<lane_rig>(d, r.machine->create_stream(0)));
  lane_rig& shared = *lanes[0];
  lane_rig& other = *lanes[1];
  const std::uint64_t a = shared.allocate(10 * MiB);

  stopping::arm();
  std::uint64_t late = 0;
  std::thread sleeper([&] { late = shared.allocate(30 * MiB); });
  stopping::wait_until_stopped();

  // The same lane and another one grow, trim and collect meanwhile.
  const std::uint64_t b = shared.allocate(30 * MiB);
  const std::uint64_t c = other.allocate(30 * MiB);
  ASSERT_TRUE(a != 0 && b != 0 && c != 0);
  heap::find_slot(b)->states[heap::granule_in_slot(b)].store(heap::code_pending);
  ASSERT_TRUE(push_pending(other.lane, b));
  EXPECT_EQ(collect(d, nullptr), 30 * MiB);
  other.free(c);
  // b is free in the shared lane, c in the other.
  EXPECT_EQ(retire_free_chunks(other.lane, 0), 30 * MiB);
  EXPECT_EQ(retire_free_chunks(shared.lane, 0), 30 * MiB);
  // What the stopped thread charged, and what lives.
  EXPECT_EQ(d.reserved(), 40 * MiB);
  EXPECT_EQ(r.machine->reserved_bytes(0), 10 * MiB);

  stopping::let_go();
  sleeper.join();
  ASSERT_NE(late, 0u);
  EXPECT_TRUE(r.machine->accessible(0, reinterpret_cast<void*>(late), 30 * MiB));
  EXPECT_EQ(d.reserved(), r.machine->reserved_bytes(0));
  shared.free(late);
  shared.free(a);
  retire_free_chunks(shared.lane, 0);
  EXPECT_EQ(d.reserved(), 0u);
  EXPECT_EQ(r.machine->live().handles, 0u);
  EXPECT_EQ(r.faults(), "");
}

}  // namespace
}  // namespace weir::vm
