// C12: threads, services, statics and the process end in any order.

#include <gmock/gmock.h>
#include <pthread.h>

#include <barrier>
#include <cstdlib>
#include <optional>

#include "support/rig.hpp"

namespace weir::test {
namespace {

TEST(life_cycle, services_come_and_go_and_leave_nothing) {
  const auto machine = std::make_shared<sim::machine>(devices(2));
  const stream_t s = machine->create_stream(0);
  const sim::live_counts before = machine->live();
  for (int i = 0; i < 30; ++i) {
    weir::service service(quiet(), machine);
    EXPECT_EQ(service.statistics().total().allocations, 0u) << "counts of an earlier service show";
    weir::lane l = service.lane(0, s);
    for (const std::size_t bytes : {100u, 70000u, 3u << 20}) l.deallocate(l.allocate(bytes));
    EXPECT_EQ(service.statistics().total().allocations, 3u);
    EXPECT_EQ(service.statistics().total().frees, 3u);
  }
  EXPECT_EQ(machine->live(), before);
  machine->destroy_stream(s);
}

TEST(life_cycle, services_side_by_side_do_not_meet) {
  const auto machine = std::make_shared<sim::machine>(devices(1));
  const stream_t s = machine->create_stream(0);
  {
    weir::service first(quiet(), machine);
    weir::lane l = first.lane(0, s);
    void* p = l.allocate(1000);
    {
      weir::service second(quiet(), machine);
      weir::lane m = second.lane(0, s);
      EXPECT_FALSE(l == m);
      void* q = m.allocate(1000);
      EXPECT_EQ(second.statistics().total().live, 1024u);
      m.deallocate(q);
    }
    EXPECT_EQ(first.statistics().total().live, 1024u);
    EXPECT_TRUE(machine->accessible(0, p, 1000));
    l.deallocate(p);
  }
  EXPECT_EQ(machine->live().handles, 0u);
  machine->destroy_stream(s);
}

TEST(life_cycle, a_thread_may_end_after_the_service) {
  std::barrier used(2);
  std::barrier ended(2);
  std::optional<rig> r(std::in_place);
  weir::lane l = r->lane();
  std::jthread late([&] {
    for (int i = 0; i < 100; ++i) l.deallocate(l.allocate(1000));
    used.arrive_and_wait();
    ended.arrive_and_wait();  // its cache still knows the lane
  });
  used.arrive_and_wait();
  l = {};
  r.reset();
  rig next;  // takes the lane's number
  weir::lane m = next.lane();
  void* p = m.allocate(1000);
  ended.arrive_and_wait();
  late.join();
  m.deallocate(p);
}

TEST(life_cycle, a_thread_that_knew_an_ended_lane_uses_the_next_of_its_number) {
  std::barrier step(2);
  std::optional<rig> r(std::in_place);
  std::optional<weir::lane> l(r->lane());
  std::jthread other([&] {
    for (int round = 0; round < 2; ++round) {
      std::vector<void*> blocks;
      for (int i = 0; i < 50; ++i) blocks.push_back(l->allocate(1000));
      for (void* p : blocks) l->deallocate(p);
      step.arrive_and_wait();
      step.arrive_and_wait();
    }
  });
  step.arrive_and_wait();
  l.reset();
  r.reset();
  r.emplace();
  l.emplace(r->lane());
  step.arrive_and_wait();
  step.arrive_and_wait();
  EXPECT_EQ(r->statistics().live, 0u);
  step.arrive_and_wait();
  other.join();
  l.reset();
}

TEST(life_cycle, handles_that_outlive_the_service_fail_cleanly) {
  std::optional<rig> r(std::in_place);
  weir::lane l = r->lane();
  weir::lane copy = l;
  const weir::pool p = r->service->make_pool("kept");
  l.deallocate(l.allocate(1000));
  r.reset();
  EXPECT_EQ(l.try_allocate(1000), nullptr);
  EXPECT_EQ(copy.try_allocate(3 * mib), nullptr);
  try {
    static_cast<void>(l.allocate(1000));
    ADD_FAILURE() << "an ended service gave memory";
  } catch (const weir::error& e) {
    EXPECT_EQ(e.code(), errc::shut_down);
  }
  EXPECT_STREQ(p.name(), "kept");
  l.deallocate(nullptr);
}

TEST(life_cycle, a_dead_handle_frees_a_dead_block_where_no_service_lives) {
  auto machine = std::make_shared<sim::machine>();
  auto service = std::make_unique<weir::service>(quiet(), machine);
  const stream_t s = machine->create_stream(0);
  sim::gate gate = machine->hold(s);
  weir::lane dead = service->lane(0, machine->create_stream(0));
  weir::lane other = service->lane(0, s);
  void* p = dead.allocate(1000);
  other.deallocate(dead.allocate(1000));  // pending for as long as the gate is closed
  service.reset();                        // gives up on it: the lane's addresses stay known
  dead.deallocate(p);
  other.deallocate(p);
  weir::deallocate(p);
  gate.open();
}

TEST(life_cycle, a_dead_handle_frees_no_block_of_a_living_service) {
  std::optional<rig> gone(std::in_place);
  weir::lane dead = gone->lane();
  gone.reset();
  rig r;
  weir::lane l = r.lane();
  void* p = l.allocate(1000);
  dead.deallocate(p);
  block_info found;
  ASSERT_TRUE(r.service->query(p, found));
  EXPECT_TRUE(found.live) << "freed, or pending for ever, in the order of a lane that is no more";
  r.misuses();
  if (found.live) l.deallocate(p);
}

TEST(life_cycle, blocks_live_at_the_end_are_told_of_and_later_frees_are_no_crash) {
  const auto machine = std::make_shared<sim::machine>(devices(1));
  const stream_t s = machine->create_stream(0);
  std::vector<std::string> said;
  void* small = nullptr;
  void* run = nullptr;
  {
    weir::service service(quiet(), machine);
    service.on_event([&](const event& e) { said.emplace_back(e.text); });
    weir::lane l = service.lane(0, s);
    small = l.allocate(1000);
    run = l.allocate(3 * mib);
  }
  EXPECT_THAT(said, testing::Contains(testing::HasSubstr("2 live blocks")));
  EXPECT_EQ(machine->live().handles, 0u);
  rig r;
  for (void* p : {small, run}) {
    weir::deallocate(p);
    const auto heard = r.misuses();  // of a service that is gone: told to one that lives
    ASSERT_EQ(heard.size(), 1u);
    EXPECT_EQ(heard[0].address, p);
  }
  machine->destroy_stream(s);
}

TEST(life_cycle, the_service_waits_for_the_gpu_before_it_unmaps) {
  const auto machine = std::make_shared<sim::machine>(devices(1));
  const stream_t s = machine->create_stream(0);
  std::atomic<bool> opened{false};
  std::jthread opener;
  {
    weir::service service(quiet(), machine);
    weir::lane l = service.lane(0, s);
    void* p = l.allocate(mib);
    sim::gate g = machine->hold(s);
    machine->fill(s, p, 1, mib);
    l.deallocate(p);
    opener = std::jthread([&opened, g]() mutable {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      opened = true;
      g.open();
    });
  }
  EXPECT_TRUE(opened);
  machine->synchronize(s);
  EXPECT_TRUE(machine->faults().empty()) << machine->faults()[0].text;
  EXPECT_EQ(machine->live().handles, 0u);
  machine->destroy_stream(s);
}

// --- frees while a thread ends -------------------------------------------------------------------------------------

struct free_at_thread_end {
  std::vector<void*> blocks;
  ~free_at_thread_end() {
    for (void* p : blocks) weir::deallocate(p);
  }
};

TEST(life_cycle, destructors_of_a_thread_may_free) {
  rig r;
  weir::lane l = r.lane();
  for (const bool before_first_call : {true, false}) {
    std::thread([&] {
      static thread_local std::optional<free_at_thread_end> at_end;
      if (before_first_call) at_end.emplace();
      for (const std::size_t bytes : {100u, 5000u, 70000u, 3u << 20}) {
        void* p = l.allocate(bytes);
        if (!at_end) at_end.emplace();
        at_end->blocks.push_back(p);
      }
    }).join();
    EXPECT_EQ(r.statistics().live, 0u);
  }
}

// A key whose destructor frees one block and asks to be called again, as long as the system does.
struct rounds {
  pthread_key_t key;
  std::vector<void*> blocks;
};

extern "C" void weir_test_round(void* value) {
  auto* r = static_cast<rounds*>(value);
  if (r->blocks.empty()) return;
  weir::deallocate(r->blocks.back());
  r->blocks.pop_back();
  pthread_setspecific(r->key, r);
}

TEST(life_cycle, frees_in_every_round_of_exit_destructors) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "tsan ends its own state of a thread before the last rounds";
#endif
  rig r;
  weir::lane l = r.lane();
  rounds state{};
  ASSERT_EQ(pthread_key_create(&state.key, weir_test_round), 0);
  for (int i = 0; i < 20; ++i) {
    std::thread([&] {
      for (int k = 0; k < 4; ++k) state.blocks.push_back(l.allocate(1000));
      pthread_setspecific(state.key, &state);
    }).join();
    for (void* p : std::exchange(state.blocks, {})) weir::deallocate(p);
  }
  EXPECT_EQ(r.statistics().live, 0u);
  EXPECT_LE(r.service->statistics().threads, 2u) << "caches of dead threads were left behind";
  pthread_key_delete(state.key);
}

// --- the process ends ------------------------------------------------------------------------------------------------
// Each runs in a process of its own, started afresh.

struct owner {
  std::vector<void*> blocks;
  ~owner() {
    for (void* p : blocks) weir::deallocate(p);
    std::fputs("freed by a static\n", stderr);
  }
};

class exits : public testing::Test {
 protected:
  exits() {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    setenv("WEIR_DRIVER", "sim", 1);
  }
  ~exits() override { unsetenv("WEIR_DRIVER"); }

  static std::vector<void*> some_blocks() {
    std::vector<void*> blocks;
    weir::lane l = weir::service::global().lane(0, nullptr);
    for (const std::size_t bytes : {100u, 70000u, 3u << 20}) blocks.push_back(l.allocate(bytes));
    return blocks;
  }
  static std::vector<std::thread>& busy_threads() {
    static auto* threads = new std::vector<std::thread>;
    for (int i = 0; i < 3; ++i) {
      threads->emplace_back([] {
        weir::lane l = weir::service::global().lane(0, nullptr);
        for (;;) l.deallocate(l.try_allocate(5000));
      });
    }
    return *threads;
  }
};

TEST_F(exits, case_B37_statics_free_after_main) {
  EXPECT_EXIT(
      {
        static owner before;
        before.blocks = some_blocks();
        static owner after;
        after.blocks = some_blocks();
        std::exit(7);
      },
      testing::ExitedWithCode(7), "^freed by a static\nfreed by a static\n$");
}

TEST_F(exits, case_B37_exit_with_live_and_cached_blocks_from_a_worker) {
  EXPECT_EXIT(
      {
        some_blocks();
        for (void* p : some_blocks()) weir::deallocate(p);
        std::thread([] { std::exit(8); }).join();
      },
      testing::ExitedWithCode(8), "^$");
}

TEST_F(exits, case_B37_quick_exit) {
  EXPECT_EXIT(
      {
        some_blocks();
        std::quick_exit(9);
      },
      testing::ExitedWithCode(9), "^$");
}

TEST_F(exits, threads_that_still_allocate_when_the_process_ends) {
  EXPECT_EXIT(
      {
        static owner o;
        o.blocks = some_blocks();
        busy_threads();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        std::exit(10);
      },
      testing::ExitedWithCode(10), "^freed by a static\n$");
}

TEST_F(exits, a_static_service_of_the_users_own) {
  EXPECT_EXIT(
      {
        static owner o;
        static weir::service own(quiet());
        weir::lane l = own.lane(0, nullptr);
        o.blocks.push_back(l.allocate(1000));
        l = {};
        std::exit(11);
      },
      testing::ExitedWithCode(11), "freed by a static");
}

}  // namespace
}  // namespace weir::test
