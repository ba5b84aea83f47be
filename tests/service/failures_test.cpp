// Driver calls that fail, each one in turn: an allocation that fails has changed nothing, a trim that fails loses
// nothing, and the next call without the fault succeeds (cases B07, B49).

#include <gmock/gmock.h>

#include <algorithm>

#include "support/rig.hpp"

namespace weir::test {
namespace {

// What a failed call must leave as it was.
struct holdings {
  std::uint64_t handles, handle_bytes, mappings, mapped_bytes, reservations, addresses;
  std::uint64_t live, asked, cached, free_pages, slack, pending, retiring, reserved, allocations, frees;
  bool operator==(const holdings&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const holdings& h) {
    return out << "driver: " << h.handles << " handles (" << h.handle_bytes << " B), " << h.mappings << " mappings ("
               << h.mapped_bytes << " B), " << h.reservations << " reservations (" << h.addresses << " B); ours: live "
               << h.live << ", asked " << h.asked << ", cached " << h.cached << ", free pages " << h.free_pages
               << ", slack " << h.slack << ", pending " << h.pending << ", retiring " << h.retiring << ", reserved "
               << h.reserved << ", allocations " << h.allocations << ", frees " << h.frees;
  }
};

holdings held(const rig& r) {
  const sim::live_counts l = r.machine->live();
  const device_statistics s = r.statistics();
  return {l.handles,  l.handle_bytes, l.mappings,    l.mapped_bytes, l.reservations, l.reserved_addresses,
          s.live,     s.asked,        s.cached,      s.free_pages,   s.slack,        s.pending,
          s.retiring, s.reserved,     s.allocations, s.frees};
}

struct growth {
  const char* name;
  std::size_t before;  // allocated first, so that the lane has a piece and chunks; 0: nothing
  std::size_t bytes;
  std::size_t alignment;
  friend std::ostream& operator<<(std::ostream& out, const growth& g) { return out << g.name; }
};

constexpr growth growths[] = {{"first_small", 0, 1000, 256},
                              {"first_large", 0, 64 * mib, 256},
                              {"beside_others", 3 * mib, 64 * mib, 256},
                              {"aligned", 3 * mib, 20 * mib, 2 * mib},
                              {"new_piece", 3 * gib, 2 * gib, 256}};

config failing() {
  config c = quiet();
  c.maintenance = false;  // the counting of calls is exact
  c.chunk_size = 16 * mib;
  c.oom_wait = std::chrono::milliseconds(20);
  return c;
}

sim::machine_config one_device() { return devices(1, 6 * gib); }

// Calls by name that `work` makes.
std::vector<sim::call_record> calls_of(const rig& r, const std::function<void()>& work) {
  r.machine->reset_calls();
  work();
  return r.machine->calls();
}

class failures : public testing::TestWithParam<growth> {
 protected:
  // The calls that this growth makes when all goes well.
  static std::vector<sim::call_record> growth_calls() {
    rig r(failing(), one_device());
    weir::lane l = r.lane();
    void* first = l.allocate(GetParam().before);
    void* p = nullptr;
    auto calls = calls_of(r, [&] { p = l.allocate(GetParam().bytes, GetParam().alignment); });
    l.deallocate(p);
    l.deallocate(first);
    return calls;
  }

  static void fail_one(const std::string& call, std::uint64_t k, sim::result with, std::uint64_t count) {
    SCOPED_TRACE(testing::Message() << call << " number " << k << ", " << count << " times, with "
                                    << static_cast<int>(with));
    rig r(failing(), one_device());
    weir::lane l = r.lane();
    void* first = l.allocate(GetParam().before);
    const holdings before = held(r);
    r.machine->fail(call, k, with, count);
    void* p = nullptr;
    try {
      p = l.allocate(GetParam().bytes, GetParam().alignment);
    } catch (const weir::out_of_memory&) {
      EXPECT_EQ(with, sim::result::out_of_memory) << "the driver's own error was turned into out of memory";
    } catch (const weir::error& e) {
      EXPECT_EQ(e.code(), errc::driver_error);
      EXPECT_THAT(e.what(), testing::HasSubstr("(" + std::to_string(static_cast<int>(with)) + ")"));
    }
    if (p == nullptr) {
      EXPECT_EQ(held(r), before);
    } else {
      l.deallocate(p);
    }
    EXPECT_EQ(r.service->check(), "");
    // Where the driver refuses the way back, nobody can go it.
    EXPECT_EQ(call == "cuCtxPopCurrent" ? -1 : r.machine->current_device(), -1);
    r.machine->set_device(-1);
    void* small = l.try_allocate(GetParam().bytes / 100 + 1);
    l.deallocate(small);
    r.machine->clear_failures();
    ASSERT_NO_THROW(p = l.allocate(GetParam().bytes, GetParam().alignment)) << "without the fault";
    EXPECT_TRUE(r.machine->accessible(0, p, GetParam().bytes));
    l.deallocate(p);
    l.deallocate(first);
  }
};

// All of few calls; the first, the last and some between of many.
std::vector<std::uint64_t> chosen(std::uint64_t count) {
  std::vector<std::uint64_t> all;
  for (std::uint64_t k = 1; k <= count; k += k < 6 || k + 2 >= count ? 1 : std::max<std::uint64_t>(1, count / 4)) {
    all.push_back(k);
  }
  return all;
}

TEST_P(failures, case_B07_every_call_of_a_growth_that_fails_changes_nothing) {
  const auto calls = growth_calls();
  ASSERT_THAT(calls, testing::Not(testing::IsEmpty()));
  for (const char* needed : {"cuMemCreate", "cuMemMap", "cuMemSetAccess"}) {
    EXPECT_TRUE(std::ranges::any_of(calls, [&](const auto& c) { return c.name == needed; })) << needed;
  }
  for (const sim::call_record& c : calls) {
    for (const std::uint64_t k : chosen(c.count)) {
      for (const sim::result with : {sim::result::out_of_memory, sim::result::unknown}) {
        fail_one(c.name, k, with, 1);        // once
        fail_one(c.name, k, with, 1000000);  // from then on
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(growths, failures, testing::ValuesIn(growths),
                         [](const auto& made) { return std::string(made.param.name); });

// A rig with `blocks` blocks of 20 MiB freed, on two lanes.
struct full_of_free {
  explicit full_of_free(rig& r) : a(r.lane()), b(r.lane()) {
    std::vector<void*> blocks;
    for (int i = 0; i < 3; ++i) {
      blocks.push_back(a.allocate(20 * mib));
      blocks.push_back(b.allocate(20 * mib));
    }
    kept = a.allocate(1000);
    for (void* p : blocks) weir::deallocate(p);
  }
  void end() { a.deallocate(kept); }
  weir::lane a;
  weir::lane b;
  void* kept = nullptr;
};

TEST(failures_of_trim, every_call_of_a_trim_that_fails_loses_nothing) {
  std::vector<sim::call_record> calls;
  {
    rig r(failing(), one_device());
    full_of_free f(r);
    calls = calls_of(r, [&] { r.service->trim(); });
    f.end();
  }
  for (const char* needed : {"cuMemUnmap", "cuMemRelease"}) {
    EXPECT_TRUE(std::ranges::any_of(calls, [&](const auto& c) { return c.name == needed; })) << needed;
  }
  for (const sim::call_record& c : calls) {
    for (const std::uint64_t k : chosen(c.count)) {
      for (const sim::result with : {sim::result::out_of_memory, sim::result::unknown, sim::result::not_permitted}) {
        for (const std::uint64_t count : {1u, 1000000u}) {
          SCOPED_TRACE(testing::Message()
                       << c.name << " number " << k << ", " << count << " times, with " << static_cast<int>(with));
          rig r(failing(), one_device());
          full_of_free f(r);
          const std::uint64_t live = r.statistics().live;
          r.machine->fail(c.name, k, with, count);
          r.service->trim();
          EXPECT_EQ(r.statistics().live, live);
          EXPECT_EQ(r.service->check(), "");
          EXPECT_EQ(sum_of_parts(r.statistics()), r.statistics().reserved);
          EXPECT_EQ(r.machine->reserved_bytes(0), r.statistics().reserved);
          r.machine->clear_failures();
          void* p = nullptr;
          ASSERT_NO_THROW(p = f.a.allocate(50 * mib));
          EXPECT_TRUE(r.machine->accessible(0, p, 50 * mib));
          f.a.deallocate(p);
          f.end();
        }
      }
    }
  }
}

TEST(failures_of_order, events_that_fail_keep_blocks_pending_and_lose_none) {
  for (const char* call : {"cuEventCreate", "cuEventRecord", "cuEventQuery", "cuStreamIsCapturing",
                           "cuStreamGetCaptureInfo", "cuCtxPushCurrent", "cuThreadExchangeStreamCaptureMode"}) {
    for (const sim::result with : {sim::result::out_of_memory, sim::result::unknown}) {
      SCOPED_TRACE(testing::Message() << call << " with " << static_cast<int>(with));
      rig r(failing(), one_device());
      const stream_t second = r.stream();
      weir::lane a = r.lane();
      weir::lane b = r.service->lane(0, second);
      void* p = a.allocate(1000);
      void* q = a.allocate(3 * mib);
      sim::gate g = r.machine->hold(second);
      r.machine->fail(call, 1, with, 1000000);
      b.deallocate(p);
      try {
        r.service->record_use(q, second);
      } catch (const weir::error& e) {
        EXPECT_EQ(e.code(), errc::driver_error);
      }
      a.deallocate(q);
      r.service->collect();
      block_info found;
      EXPECT_TRUE(r.service->query(p, found)) << "given free though its stream has not passed";
      EXPECT_EQ(r.service->check(), "");
      g.open();
      r.machine->synchronize(second);
      r.service->collect();
      r.machine->clear_failures();
      EXPECT_TRUE(eventually([&] {
        r.service->collect();
        return !r.service->query(p, found) && !r.service->query(q, found);
      }));
    }
  }
}

TEST(failures_of_memory, case_B49_out_of_memory_leaves_the_next_call_working) {
  rig r(failing(), devices(2, 64 * mib));
  weir::lane first = r.lane(0);
  weir::lane second = r.lane(1);
  // The first call of all, with nothing cached.
  EXPECT_THROW(static_cast<void>(first.allocate(128 * mib)), weir::out_of_memory);
  EXPECT_THROW(static_cast<void>(second.allocate(65 * mib)), weir::out_of_memory);
  void* small = first.allocate(100);
  void* most = second.allocate(50 * mib);
  EXPECT_THROW(static_cast<void>(second.allocate(20 * mib)), weir::out_of_memory);
  EXPECT_EQ(second.try_allocate(20 * mib), nullptr);
  r.machine->fill(second.stream(), most, 1, 50 * mib);
  r.machine->synchronize(second.stream());
  void* other = second.allocate(mib);
  EXPECT_EQ(r.statistics(1).out_of_memory, 3u);
  second.deallocate(other);
  second.deallocate(most);
  first.deallocate(small);
}

TEST(failures_of_memory, case_B49_a_lost_device_is_told_as_itself) {
  const auto machine = std::make_shared<sim::machine>(devices(2));
  weir::service service(failing(), machine);
  const stream_t stream = machine->create_stream(0);
  const stream_t other_stream = machine->create_stream(1);
  weir::lane l = service.lane(0, stream);
  weir::lane other = service.lane(1, other_stream);
  void* p = l.allocate(1000);
  void* run = l.allocate(3 * mib);
  machine->kill(0, sim::result::ecc_uncorrectable);
  for (int i = 0; i < 3; ++i) {
    try {
      static_cast<void>(l.allocate(gib));
      ADD_FAILURE() << "a lost device grew";
    } catch (const weir::error& e) {
      EXPECT_EQ(e.code(), errc::driver_error);
      EXPECT_THAT(e.what(), testing::HasSubstr("ECC"));
    } catch (const weir::out_of_memory& e) {
      ADD_FAILURE() << "turned into out of memory: " << e.what();
    }
  }
  EXPECT_EQ(l.try_allocate(gib), nullptr);
  l.deallocate(p);
  l.deallocate(run);
  static_cast<void>(service.statistics());
  static_cast<void>(service.summary());
  service.collect();
  service.trim();
  // The other device is not harmed.
  void* q = other.allocate(100 * mib);
  EXPECT_TRUE(machine->accessible(1, q, 100 * mib));
  other.deallocate(q);
}

TEST(failures_of_memory, other_processes_take_the_memory) {
  rig r(failing(), devices(1, 256 * mib));
  weir::lane l = r.lane();
  r.machine->other_process_holds(0, 200 * mib);
  try {
    static_cast<void>(l.allocate(100 * mib));
    ADD_FAILURE() << "there is no such memory";
  } catch (const weir::out_of_memory& e) {
    EXPECT_GE(e.report().others, 200 * mib);
    EXPECT_EQ(e.report().asked, 100 * mib);
    EXPECT_THAT(e.what(), testing::HasSubstr("others hold"));
  }
  void* p = l.allocate(40 * mib);
  r.machine->other_process_holds(0, 0);
  void* q = l.allocate(100 * mib);
  l.deallocate(p);
  l.deallocate(q);
}

}  // namespace
}  // namespace weir::test
