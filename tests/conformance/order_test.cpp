// Order (C5): what lies in a lane's caches, spans and pages may be used in its stream's order now. Gates hold streams
// back, so that a block that comes too early is seen.

#include <gmock/gmock.h>

#include <set>

#include "driver/table.hpp"
#include "support/rig.hpp"

namespace weir::test {
namespace {

// Streams of a busy machine are slow: requests wait for them as long as it takes.
config patient() {
  config c = quiet();
  c.oom_wait = std::chrono::seconds(30);
  return c;
}

struct order : testing::Test {
  order() : first(r.stream()), second(r.stream()), a(r.service->lane(0, first)), b(r.service->lane(0, second)) {}
  ~order() override {
    a = {};
    b = {};
    r.finish();
  }

  // Whether the lane gives this very block before it must grow. Gives everything back.
  bool given_again(weir::lane& l, void* p, std::size_t bytes) {
    std::vector<void*> taken;
    bool found = false;
    const std::uint64_t growths = r.statistics().growths;
    for (int i = 1; !found && (i % 100 != 0 || r.statistics().growths == growths); ++i) {
      taken.push_back(l.allocate(bytes));
      found = taken.back() == p;
    }
    for (void* t : taken) l.deallocate(t);
    return found;
  }
  bool pending(void* p) {
    block_info found;
    return r.service->query(p, found) && !found.live;
  }

  rig r{patient()};
  stream_t first;
  stream_t second;
  weir::lane a;
  weir::lane b;
};

constexpr std::size_t sizes[] = {100, 300 * kib, 2 * mib};

TEST_F(order, a_block_freed_in_its_own_order_is_reused_at_once) {
  for (const std::size_t bytes : sizes) {
    void* p = a.allocate(bytes);
    sim::gate g = r.machine->hold(first);
    r.machine->fill(first, p, 1, bytes);
    a.deallocate(p);
    EXPECT_FALSE(pending(p));
    EXPECT_TRUE(given_again(a, p, bytes));
    g.open();
  }
}

TEST_F(order, a_block_freed_on_another_lane_waits_for_that_lane) {
  for (const std::size_t bytes : sizes) {
    SCOPED_TRACE(bytes);
    void* p = a.allocate(bytes);
    sim::gate g = r.machine->hold(second);
    r.machine->fill(second, p, 2, bytes);
    b.deallocate(p);
    EXPECT_TRUE(pending(p));
    block_info whole;
    ASSERT_TRUE(r.service->query(p, whole));
    EXPECT_EQ(r.statistics().pending, whole.bytes);
    r.service->collect();
    EXPECT_TRUE(pending(p)) << "collected before its stream has passed";
    EXPECT_FALSE(given_again(a, p, bytes));
    EXPECT_FALSE(given_again(b, p, bytes));
    g.open();
    r.machine->synchronize(second);
    EXPECT_TRUE(eventually([&] {
      r.service->collect();
      return !pending(p);
    }));
    EXPECT_TRUE(given_again(a, p, bytes)) << "it goes home to its own lane";
    EXPECT_EQ(r.statistics().pending, 0u);
  }
}

TEST_F(order, work_given_before_the_free_counts_work_given_after_it_does_not) {
  void* p = a.allocate(1000);
  b.deallocate(p);
  r.service->collect();  // fences what was freed
  sim::gate later = r.machine->hold(second);
  EXPECT_TRUE(eventually([&] {
    r.service->collect();
    return !pending(p);
  })) << "held back by work that was queued after the fence";
  later.open();
}

TEST_F(order, a_recorded_use_holds_a_block_back) {
  for (const std::size_t bytes : sizes) {
    SCOPED_TRACE(bytes);
    void* p = a.allocate(bytes);
    sim::gate g = r.machine->hold(second);
    r.machine->fill(second, p, 3, bytes);
    r.service->record_use(p, second);
    block_info found;
    ASSERT_TRUE(r.service->query(p, found));
    EXPECT_TRUE(found.live);
    a.deallocate(p);
    EXPECT_TRUE(pending(p));
    r.service->collect();
    EXPECT_FALSE(given_again(a, p, bytes));
    g.open();
    r.machine->synchronize(second);
    EXPECT_TRUE(eventually([&] {
      r.service->collect();
      return !pending(p);
    }));
    EXPECT_TRUE(given_again(a, p, bytes));
  }
}

TEST_F(order, case_B33_a_use_through_an_interior_pointer_counts_for_the_block) {
  auto* p = static_cast<char*>(a.allocate(300 * kib));
  sim::gate g = r.machine->hold(second);
  r.service->record_use(p + 299 * kib, second);
  a.deallocate(p);
  r.service->collect();
  EXPECT_TRUE(pending(p));
  g.open();
  r.machine->synchronize(second);
  EXPECT_TRUE(eventually([&] {
    r.service->collect();
    return !pending(p);
  }));
}

TEST_F(order, a_use_of_an_unknown_address_is_misuse) {
  int local = 0;
  void* p = a.allocate(1000);
  a.deallocate(p);
  for (const void* wrong : {static_cast<const void*>(&local), static_cast<const void*>(p)}) {
    r.service->record_use(wrong, second);
    const auto heard = r.misuses();
    ASSERT_EQ(heard.size(), 1u);
    EXPECT_EQ(heard[0].what, misuse::kind::bad_record_use);
    EXPECT_EQ(heard[0].address, wrong);
  }
}

TEST_F(order, a_use_on_the_blocks_own_stream_costs_nothing) {
  void* p = a.allocate(1000);
  r.service->record_use(p, first);
  a.deallocate(p);
  EXPECT_FALSE(pending(p));
}

TEST_F(order, several_uses_all_count) {
  const stream_t third = r.stream();
  void* p = a.allocate(1000);
  sim::gate g2 = r.machine->hold(second);
  sim::gate g3 = r.machine->hold(third);
  r.service->record_use(p, second);
  r.service->record_use(p, third);
  a.deallocate(p);
  g2.open();
  r.machine->synchronize(second);
  r.service->collect();
  EXPECT_TRUE(pending(p)) << "the third stream has not passed";
  g3.open();
  r.machine->synchronize(third);
  EXPECT_TRUE(eventually([&] {
    r.service->collect();
    return !pending(p);
  }));
}

TEST_F(order, a_double_free_of_a_pending_block_is_refused) {
  void* p = a.allocate(1000);
  sim::gate g = r.machine->hold(second);
  b.deallocate(p);
  for (const auto& free_again : {std::function<void()>([&] { b.deallocate(p); }), {[&] { a.deallocate(p); }}}) {
    free_again();
    const auto heard = r.misuses();
    ASSERT_EQ(heard.size(), 1u);
    EXPECT_EQ(heard[0].what, misuse::kind::double_free);
  }
  EXPECT_TRUE(pending(p));
  g.open();
}

TEST_F(order, case_B16_hops_between_lanes_keep_the_wait) {
  // x is used on a, and freed there with the work still held: whoever gets its memory must come after it.
  const std::size_t bytes = 32 * mib;
  r.service->limit(0, 64 * mib);
  void* x = a.allocate(bytes);
  sim::gate g = r.machine->hold(first);
  r.machine->fill(first, x, 1, bytes);
  a.deallocate(x);
  // b and c can only be served by what a gives up.
  const stream_t third = r.stream();
  weir::lane c = r.service->lane(0, third);
  const std::jthread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    g.open();
  });
  void* big = b.try_allocate(60 * mib);
  if (big != nullptr) b.deallocate(big);
  void* y = c.allocate(60 * mib);
  r.machine->fill(third, y, 2, 60 * mib);
  std::atomic<int> wrong{0};
  r.machine->expect(third, y, 2, 60 * mib, [&](std::size_t, unsigned char) { ++wrong; });
  r.synchronize();
  EXPECT_EQ(wrong, 0);
  c.deallocate(y);
  c = {};
}

TEST(order_of_splits, case_B17_a_split_remainder_waits_as_the_whole_did) {
  config c = patient();
  c.chunk_size = 2 * mib;
  c.limit = 8 * mib;
  rig r(c);
  const stream_t first = r.stream();
  const stream_t second = r.stream();
  weir::lane a = r.service->lane(0, first);
  weir::lane b = r.service->lane(0, second);
  void* big = a.allocate(6 * mib);
  sim::gate g = r.machine->hold(first);
  r.machine->fill(first, big, 1, 6 * mib);
  a.deallocate(big);
  void* h = a.allocate(mib + 1);  // splits; the rest is only enough for b together with what is left of the limit
  const std::jthread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    g.open();
  });
  void* q = b.allocate(5 * mib);
  r.machine->fill(second, q, 2, 5 * mib);
  std::atomic<int> wrong{0};
  r.machine->expect(second, q, 2, 5 * mib, [&](std::size_t, unsigned char) { ++wrong; });
  r.synchronize();
  EXPECT_EQ(wrong, 0);
  a.deallocate(h);
  b.deallocate(q);
}

TEST_F(order, a_trim_waits_for_the_work_that_uses_what_was_freed) {
  void* p = a.allocate(32 * mib);
  sim::gate g = r.machine->hold(first);
  r.machine->fill(first, p, 1, 32 * mib);
  a.deallocate(p);
  r.service->trim();
  // The kernel that fills it has not run: unmapping now would be a fault of the machine's (rig::finish looks).
  EXPECT_GE(r.machine->live().mapped_bytes, 32 * mib);
  g.open();
  r.machine->synchronize(first);
  EXPECT_TRUE(eventually([&] {
    r.service->trim();
    return r.machine->live().mapped_bytes == 0;
  }));
}

TEST_F(order, a_hold_keeps_trims_off) {
  a.deallocate(a.allocate(32 * mib));
  {
    const auto hold = r.service->hold_trims();
    EXPECT_EQ(r.service->trim(), 0u);
    EXPECT_GE(r.machine->live().mapped_bytes, 32 * mib);
  }
  EXPECT_GE(r.service->trim(), 32 * mib);
}

TEST_F(order, retire_fences_what_the_stream_freed) {
  const stream_t dying = r.machine->create_stream(0);
  weir::lane d = r.service->lane(0, dying);
  void* p = a.allocate(1000);
  sim::gate g = r.machine->hold(dying);
  r.machine->fill(dying, p, 1, 1000);
  d.deallocate(p);
  d = {};
  r.service->retire(0, dying);
  r.machine->destroy_stream(dying);
  r.service->collect();
  EXPECT_TRUE(pending(p)) << "the destroyed stream's work has not run";
  g.open();
  r.synchronize();
  EXPECT_TRUE(eventually([&] {
    r.service->collect();
    return !pending(p);
  }));
}

TEST_F(order, case_B01_a_reused_stream_handle_is_another_stream) {
  const stream_t dying = r.machine->create_stream(0);
  weir::lane d = r.service->lane(0, dying);
  void* p = d.allocate(mib);
  sim::gate g = r.machine->hold(dying);
  r.machine->fill(dying, p, 1, mib);
  d.deallocate(p);
  d = {};
  r.service->retire(0, dying);
  r.machine->destroy_stream(dying);
  const stream_t again = r.machine->create_stream(0);
  ASSERT_EQ(again, dying) << "the machine is to reuse handles";
  weir::lane e = r.service->lane(0, again);
  void* q = e.allocate(mib);
  r.machine->fill(again, q, 2, mib);
  g.open();
  r.synchronize();
  std::atomic<int> wrong{0};
  r.machine->expect(again, q, 2, mib, [&](std::size_t, unsigned char) { ++wrong; });
  r.machine->synchronize(again);
  EXPECT_EQ(wrong, 0);
  e.deallocate(q);
  e = {};
  r.service->retire(0, again);
  r.machine->destroy_stream(again);
}

TEST_F(order, case_B02_each_threads_default_stream_is_its_own) {
  weir::lane mine = r.service->lane(0, per_thread_stream);
  r.machine->set_device(0);
  void* p = mine.allocate(mib);
  sim::gate g = r.machine->hold(per_thread_stream);
  r.machine->fill(per_thread_stream, p, 1, mib);
  mine.deallocate(p);
  std::atomic<int> wrong{0};
  std::thread([&] {
    weir::lane theirs = r.service->lane(0, per_thread_stream);
    EXPECT_FALSE(theirs == mine);
    r.machine->set_device(0);
    void* q = theirs.allocate(mib);
    EXPECT_NE(q, p);
    r.machine->fill(per_thread_stream, q, 2, mib);
    g.open();
    r.machine->expect(per_thread_stream, q, 2, mib, [&](std::size_t, unsigned char) { ++wrong; });
    r.machine->synchronize(per_thread_stream);
    theirs.deallocate(q);
  }).join();
  EXPECT_EQ(wrong, 0);
  r.machine->synchronize(per_thread_stream);
  r.machine->set_device(-1);
}

TEST_F(order, quiesced_frees_what_waits_for_a_stream_that_vanished) {
  const stream_t vanishing = r.machine->create_stream(0);
  void* p = a.allocate(mib);
  r.service->deallocate(p, vanishing);  // a raw-stream free: no lane handle keeps the stream
  r.machine->synchronize(vanishing);
  r.machine->destroy_stream(vanishing);  // without `retire`
  EXPECT_TRUE(eventually([&] {
    r.service->quiesced(0);
    r.service->collect();
    return !pending(p);
  }));
  EXPECT_EQ(r.statistics().stranded, 0u);
}

TEST_F(order, case_B15_one_stuck_use_blocks_nobody_else) {
  const stream_t stuck = r.stream();
  void* x = a.allocate(mib);
  sim::gate g = r.machine->hold(stuck);
  r.service->record_use(x, stuck);
  a.deallocate(x);
  const std::uint64_t queries_before = r.machine->calls("cuEventQuery");
  constexpr int rounds = 2000;
  for (int i = 0; i < rounds; ++i) {
    void* p = a.allocate(mib);
    r.service->record_use(p, second);
    a.deallocate(p);
    r.machine->synchronize(second);
  }
  // Live is nothing and one block is stuck: what is held stays a small number of blocks, not one for each round.
  EXPECT_LT(r.statistics().reserved, 200 * mib);
  EXPECT_LT(r.machine->calls("cuEventQuery") - queries_before, 20u * rounds);
  EXPECT_TRUE(pending(x));
  g.open();
  r.machine->synchronize(stuck);
  EXPECT_TRUE(eventually([&] {
    r.service->collect();
    return !pending(x);
  }));
}

TEST_F(order, case_B14_pending_frees_are_waited_for_before_a_request_fails) {
  r.service->limit(0, 64 * mib);
  void* fills = a.allocate(32 * mib);
  void* p = a.allocate(30 * mib);
  sim::gate g = r.machine->hold(second);
  r.service->record_use(p, second);
  a.deallocate(p);
  const std::jthread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    g.open();
  });
  void* q = nullptr;
  EXPECT_NO_THROW(q = a.allocate(30 * mib));
  a.deallocate(q);
  a.deallocate(fills);
}

TEST_F(order, case_B14_memory_of_another_lane_or_thread_is_found_before_a_request_fails) {
  r.service->limit(0, 64 * mib);
  // In another thread's cache, of the same lane.
  std::vector<void*> small;
  for (int i = 0; i < 60; ++i) small.push_back(a.allocate(mib));
  std::thread holder([&] {
    for (void* p : small) a.deallocate(p);
    void* q = nullptr;
    EXPECT_NO_THROW(q = b.allocate(60 * mib)) << "in the thread's own cache of another lane";
    b.deallocate(q);
    for (void*& p : small) p = a.allocate(mib);
    for (void* p : small) a.deallocate(p);
    std::thread([&] {
      void* r2 = nullptr;
      EXPECT_NO_THROW(r2 = a.allocate(60 * mib)) << "in another thread's cache";
      a.deallocate(r2);
    }).join();
  });
  holder.join();
}

}  // namespace
}  // namespace weir::test
