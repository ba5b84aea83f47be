// Cases of single threads (../shared/cases.md), each named after its fault.

#include <gmock/gmock.h>

#include "driver/table.hpp"
#include "support/rig.hpp"

namespace weir::test {
namespace {

TEST(cases, case_B31_frees_reach_their_own_device_whatever_is_current) {
  rig r(quiet(), devices(5));
  std::vector<weir::lane> lanes;
  for (int d = 0; d < 4; ++d) lanes.push_back(r.lane(d));
  const auto fill = [&] {
    std::vector<void*> blocks;
    for (int d = 0; d < 4; ++d) {
      r.machine->set_device(d);
      for (const std::size_t bytes : {100u, 70000u, 3u << 20}) {
        blocks.push_back(lanes[static_cast<std::size_t>(d)].allocate(bytes));
      }
      EXPECT_EQ(r.machine->current_device(), d);
    }
    return blocks;
  };
  const auto expect_empty = [&] {
    for (int d = 0; d < 4; ++d) EXPECT_EQ(r.statistics(d).live, 0u) << d;
    EXPECT_FALSE(r.machine->context_active(4)) << "a context on a device that nobody used";
  };
  {
    const auto blocks = fill();
    r.machine->set_device(3);
    for (void* p : blocks) {
      weir::deallocate(p);
      EXPECT_EQ(r.machine->current_device(), 3);
    }
    expect_empty();
  }
  {
    const auto blocks = fill();
    std::thread([&] {
      for (void* p : blocks) weir::deallocate(p);
      EXPECT_EQ(r.machine->current_device(), -1);
    }).join();
    expect_empty();
  }
  {
    struct freed_at_the_end {
      std::vector<void*> blocks;
      ~freed_at_the_end() {
        for (void* p : blocks) weir::deallocate(p);
      }
    };
    try {
      const freed_at_the_end owner{fill()};
      throw std::runtime_error("the test's own");
    } catch (const std::runtime_error&) {
    }
    expect_empty();
  }
  r.machine->set_device(-1);
}

TEST(cases, case_B42_a_stale_free_of_an_address_with_a_new_owner_is_the_new_owners_free) {
  // What cannot be told apart, as the documentation says; the block is then freed once, not twice.
  rig r;
  weir::lane l = r.lane();
  void* p = l.allocate(1000);
  l.deallocate(p);
  void* q = l.allocate(1000);
  ASSERT_EQ(q, p);
  l.deallocate(p);  // meant for the first
  EXPECT_THAT(r.misuses(), testing::IsEmpty());
  l.deallocate(q);
  const auto heard = r.misuses();
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_EQ(heard[0].what, misuse::kind::double_free);
}

TEST(cases, case_B57_hooks_may_call_the_service_again) {
  config c = quiet();
  c.limit = 32 * mib;
  c.oom_wait = std::chrono::milliseconds(20);
  rig r(c);
  weir::lane l = r.lane();
  void* kept = l.allocate(20 * mib);
  int asked = 0;
  std::string summary;
  r.service->on_out_of_memory([&](const out_of_memory_report& report) {
    ++asked;
    EXPECT_EQ(report.asked, 25 * mib);
    l.deallocate(l.allocate(1000));
    static_cast<void>(r.service->statistics());
    summary = r.service->summary();
    EXPECT_EQ(l.try_allocate(0), nullptr);
    r.service->collect();
    r.service->trim();
    if (kept == nullptr) return false;
    l.deallocate(std::exchange(kept, nullptr));
    return true;
  });
  void* p = nullptr;
  EXPECT_NO_THROW(p = l.allocate(25 * mib));
  EXPECT_EQ(asked, 1);
  EXPECT_FALSE(summary.empty());
  // A second one, while 25 MiB are live: the hook has nothing more to give.
  EXPECT_EQ(l.try_allocate(25 * mib), nullptr);
  EXPECT_EQ(asked, 2);
  r.service->on_out_of_memory({});
  EXPECT_EQ(l.try_allocate(25 * mib), nullptr);
  EXPECT_EQ(asked, 2);
  l.deallocate(p);
}

TEST(cases, case_B57_an_out_of_memory_hook_that_runs_out_itself_ends) {
  config c = quiet();
  c.limit = 32 * mib;
  c.oom_wait = std::chrono::milliseconds(5);
  rig r(c);
  weir::lane l = r.lane();
  int depth = 0;
  int deepest = 0;
  r.service->on_out_of_memory([&](const out_of_memory_report&) {
    deepest = std::max(deepest, ++depth);
    // A careless hook: it asks for what cannot be had, once more at each level.
    if (depth < 4) l.deallocate(l.try_allocate(gib));
    --depth;
    return false;
  });
  EXPECT_EQ(l.try_allocate(gib), nullptr);
  EXPECT_GE(deepest, 1);
  int rounds = 0;
  r.service->on_out_of_memory([&](const out_of_memory_report&) {
    ++rounds;
    return true;  // a lie: nothing was freed
  });
  EXPECT_EQ(l.try_allocate(gib), nullptr);
  EXPECT_LE(rounds, 8);
  r.service->on_out_of_memory([](const out_of_memory_report&) -> bool { throw std::runtime_error("careless"); });
  EXPECT_EQ(l.try_allocate(gib), nullptr);
}

TEST(cases, case_B57_a_misuse_hook_may_call_again) {
  rig r;
  weir::lane l = r.lane();
  int heard = 0;
  r.service->on_misuse([&](const misuse& m) {
    ++heard;
    EXPECT_EQ(m.what, misuse::kind::double_free);
    l.deallocate(l.allocate(5000));
    static_cast<void>(r.service->statistics());
    r.service->trim();
  });
  void* p = l.allocate(1000);
  l.deallocate(p);
  l.deallocate(p);
  EXPECT_EQ(heard, 1);
  EXPECT_EQ(r.service->statistics().misuses, 1u);
}

TEST(cases, hooks_that_throw_are_survived) {
  rig r;
  weir::lane l = r.lane();
  r.service->on_misuse([](const misuse&) { throw std::runtime_error("careless"); });
  void* p = l.allocate(1000);
  l.deallocate(p);
  l.deallocate(p);
  EXPECT_EQ(r.service->statistics().misuses, 1u);
}

TEST(cases, case_B69_growth_falls_back_to_the_exact_need) {
  rig r(quiet(), devices(1, 32 * gib));
  weir::lane l = r.lane();
  std::vector<void*> blocks;
  for (const std::size_t bytes : {8 * gib, 8 * gib, 8 * gib, 7 * gib}) blocks.push_back(l.allocate(bytes));
  EXPECT_LE(r.statistics().reserved, 31 * gib + 64 * mib);
  for (void* p : blocks) l.deallocate(p);
}

TEST(cases, case_B69_the_last_bytes_below_a_limit_are_used) {
  for (const std::size_t chunk : {std::size_t{0}, 2 * mib, 512 * mib}) {
    SCOPED_TRACE(chunk);
    config c = quiet();
    c.chunk_size = chunk;
    c.limit = 2 * gib;
    rig r(c, devices(1, 8 * gib));
    weir::lane l = r.lane();
    void* first = l.allocate(gib + 512 * mib);
    void* last = nullptr;
    EXPECT_NO_THROW(last = l.allocate(512 * mib));
    EXPECT_THROW(static_cast<void>(l.allocate(2 * mib)), weir::out_of_memory);
    EXPECT_LE(r.statistics().reserved, 2 * gib);
    l.deallocate(last);
    EXPECT_NO_THROW(last = l.allocate(511 * mib));
    l.deallocate(last);
    l.deallocate(first);
  }
}

TEST(cases, case_B25_reservations_are_bounded_and_fall_back_to_smaller_ones) {
  sim::machine_config m = devices(2, 4 * gib);
  m.max_reservation = 8 * gib;  // larger ones are refused
  config c = quiet();
  c.piece_size = 64 * gib;
  rig r(c, m);
  weir::lane l = r.lane();
  void* p = nullptr;
  EXPECT_NO_THROW(p = l.allocate(100 * mib));
  l.deallocate(p);
}

TEST(cases, case_B74_a_driver_that_ignores_alignment_is_no_harm) {
  sim::machine_config m = devices(1);
  m.honour_alignment = false;
  m.reservation_alignment = 64 * kib;
  rig r(quiet(), m);
  weir::lane l = r.lane();
  std::vector<void*> blocks;
  for (std::size_t alignment = 256; alignment <= max_alignment; alignment *= 2) {
    for (const std::size_t bytes : {alignment - 1, alignment, alignment + 1}) {
      blocks.push_back(l.allocate(bytes, alignment));
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(blocks.back()) % alignment, 0u);
    }
  }
  for (void* p : blocks) l.deallocate(p);
}

TEST(cases, case_B26_a_use_on_a_capturing_stream_does_not_invalidate_the_capture) {
  rig r;
  const stream_t s = r.stream();
  const stream_t captured = r.stream();
  weir::lane l = r.service->lane(0, s);
  const driver::table& cu = r.machine->table();
  void* p = l.allocate(mib);
  {
    weir::capture c(*r.service, 0);
    ASSERT_EQ(cu.cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), CUDA_SUCCESS);
    try {
      r.service->record_use(p, captured);
    } catch (const weir::error&) {
      // refused by a clear error: allowed; the capture must live
    }
    l.deallocate(p);
    void* q = l.allocate(mib);
    r.service->collect();
    r.service->trim();
    l.deallocate(q);
    CUgraph graph = nullptr;
    EXPECT_EQ(cu.cuStreamEndCapture(captured, &graph), CUDA_SUCCESS) << "the capture was invalidated";
    if (graph != nullptr) cu.cuGraphDestroy(graph);
    c.end();
  }
  r.service->collect();
}

TEST(cases, case_B27_growth_trim_and_out_of_memory_leave_captures_alone) {
  for (const CUstreamCaptureMode mode : {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL}) {
    for (const bool announced : {true, false}) {
      SCOPED_TRACE(testing::Message() << "mode " << mode << (announced ? ", announced" : ", not announced"));
      config c = quiet();
      c.limit = 256 * mib;
      c.oom_wait = std::chrono::milliseconds(20);
      c.context_fence = false;  // the one thing that may invalidate a capture that nobody announced
      rig r(c);
      const stream_t s = r.stream();
      const stream_t captured = r.stream();
      weir::lane l = r.service->lane(0, s);
      l.deallocate(l.allocate(200 * mib));
      const driver::table& cu = r.machine->table();
      std::unique_ptr<weir::capture> a;
      if (announced) a = std::make_unique<weir::capture>(*r.service, 0);
      ASSERT_EQ(cu.cuStreamBeginCapture(captured, mode), CUDA_SUCCESS);
      void* in = r.service->try_allocate(220 * mib, 0, captured);
      EXPECT_EQ(r.service->try_allocate(gib, 0, captured), nullptr);
      std::thread([&] {
        r.service->trim();
        l.deallocate(l.try_allocate(3 * mib));
      }).join();
      r.service->deallocate(in);
      CUgraph graph = nullptr;
      EXPECT_EQ(cu.cuStreamEndCapture(captured, &graph), CUDA_SUCCESS) << "the capture was invalidated";
      if (graph != nullptr) cu.cuGraphDestroy(graph);
      if (a != nullptr) a->end();
      a.reset();
    }
  }
}

TEST(cases, case_B52_hits_and_frees_synchronise_nothing) {
  rig r(quiet(), devices(2));
  const stream_t first = r.stream(0);
  const stream_t second = r.stream(1);
  weir::lane l = r.service->lane(0, first);
  weir::lane m = r.service->lane(1, second);
  // Half of a collective runs on device 0 and waits for the other half, which comes later.
  sim::gate half = r.machine->hold(first);
  void* p = l.allocate(5 * mib);
  void* q = m.allocate(5 * mib);
  l.deallocate(p);
  m.deallocate(q);
  r.service->trim();
  r.service->collect();
  EXPECT_EQ(r.machine->calls("cuCtxSynchronize"), 0u);
  EXPECT_EQ(r.machine->calls("cuStreamSynchronize"), 0u);
  EXPECT_EQ(r.machine->calls("cuEventSynchronize"), 0u);
  half.open();
}

}  // namespace
}  // namespace weir::test
