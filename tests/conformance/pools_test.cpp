// Pools, scopes and buffers.

#include <gmock/gmock.h>

#include <barrier>
#include <set>

#include "support/rig.hpp"

namespace weir::test {
namespace {

// The pool of the lane that a block of this thread's raw-stream calls comes from, told by the blocks that a lane of
// that pool gives: pools never share chunks, so equal 2 MiB strides mean equal pools.
struct pools : testing::Test {
  pools() : s(r.stream()) {}

  // The lane a block lies in, told by freeing it in the order of each candidate: the right one makes it free at once,
  // any other one makes it pending.
  bool of_pool(void* block, const weir::pool& p) {
    weir::lane l = p == weir::pool{} ? plain_lane() : r.service->lane(0, s, p);
    l.deallocate(block);
    block_info found;
    const bool waits = r.service->query(block, found);
    if (waits) {
      EXPECT_TRUE(eventually([&] {
        r.service->collect();
        return !r.service->query(block, found);
      }));
    }
    return !waits;
  }
  weir::lane plain_lane() {
    weir::lane l;
    std::thread([&] { l = r.service->lane(0, s); }).join();  // a thread without scopes
    return l;
  }
  void* raw(std::size_t bytes = 1000) { return r.service->allocate(bytes, 0, s); }

  rig r;
  stream_t s;
};

TEST_F(pools, lanes_of_different_pools_are_different_lanes) {
  const weir::pool p = r.service->make_pool("p");
  const weir::pool q = r.service->make_pool("q");
  EXPECT_STREQ(p.name(), "p");
  EXPECT_FALSE(p == q);
  const weir::lane a = r.service->lane(0, s);
  const weir::lane b = r.service->lane(0, s, p);
  const weir::lane c = r.service->lane(0, s, q);
  EXPECT_FALSE(a == b);
  EXPECT_FALSE(b == c);
  EXPECT_TRUE(b == r.service->lane(0, s, p));
}

TEST_F(pools, pools_share_no_chunk) {
  const weir::pool p = r.service->make_pool("p");
  weir::lane lanes[] = {r.service->lane(0, s), r.service->lane(0, s, p)};
  std::set<std::uintptr_t> strides[2];
  std::vector<void*> blocks[2];
  for (int i = 0; i < 200; ++i) {
    for (int l = 0; l < 2; ++l) {
      void* b = lanes[l].allocate(40 * kib);
      blocks[l].push_back(b);
      strides[l].insert(reinterpret_cast<std::uintptr_t>(b) / (2 * mib));
    }
  }
  for (const std::uintptr_t stride : strides[0]) EXPECT_FALSE(strides[1].contains(stride));
  for (int l = 0; l < 2; ++l) {
    for (void* b : blocks[l]) lanes[l].deallocate(b);
  }
}

TEST_F(pools, case_B46_scopes_nest_and_end) {
  const weir::pool p = r.service->make_pool("p");
  const weir::pool q = r.service->make_pool("q");
  void* in_p = nullptr;
  void* in_q = nullptr;
  void* in_p_again = nullptr;
  void* other_thread = nullptr;
  {
    const pool_scope outer(p);
    in_p = raw();
    std::thread([&] { other_thread = raw(); }).join();
    {
      const pool_scope inner(q);
      in_q = raw();
    }
    in_p_again = raw();
  }
  void* after = raw();
  EXPECT_TRUE(of_pool(in_p, p));
  EXPECT_TRUE(of_pool(in_q, q));
  EXPECT_TRUE(of_pool(in_p_again, p));
  EXPECT_TRUE(of_pool(other_thread, {}));
  EXPECT_TRUE(of_pool(after, {}));
}

TEST_F(pools, case_B46_an_exception_ends_the_scope) {
  const weir::pool p = r.service->make_pool("p");
  try {
    const pool_scope scope(p);
    throw std::runtime_error("the test's own");
  } catch (const std::runtime_error&) {
  }
  EXPECT_TRUE(of_pool(raw(), {}));
}

TEST_F(pools, case_B46_threads_have_pools_of_their_own_at_once) {
  const weir::pool mine[] = {r.service->make_pool("p"), r.service->make_pool("q")};
  std::vector<void*> blocks[2];
  std::barrier both(2);
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      const pool_scope scope(mine[t]);
      both.arrive_and_wait();
      for (int i = 0; i < 500; ++i) {
        void* p = raw(static_cast<std::size_t>(i % 9 + 1) * 300);
        if (i % 2 == 0) {
          blocks[t].push_back(p);
        } else {
          r.service->deallocate(p);
        }
      }
    });
  }
  for (auto& t : threads) t.join();
  for (int t = 0; t < 2; ++t) {
    weir::lane l = r.service->lane(0, s, mine[t]);
    for (void* p : blocks[t]) {
      block_info found;
      l.deallocate(p);
      ASSERT_FALSE(r.service->query(p, found)) << "a block of the other thread's pool";
    }
  }
}

TEST_F(pools, lanes_asked_for_in_a_scope_are_of_its_pool) {
  const weir::pool p = r.service->make_pool("p");
  const weir::lane named = r.service->lane(0, s, p);
  const pool_scope scope(p);
  EXPECT_TRUE(r.service->lane(0, s) == named);
}

TEST_F(pools, a_scope_of_another_service_says_nothing) {
  rig other;
  const weir::pool theirs = other.service->make_pool("theirs");
  const weir::lane plain = r.service->lane(0, s);
  const pool_scope scope(theirs);
  EXPECT_TRUE(r.service->lane(0, s) == plain);
  EXPECT_THROW(static_cast<void>(r.service->lane(0, s, theirs)), weir::error);
}

TEST_F(pools, a_pools_memory_outlives_its_handle_while_blocks_live) {
  void* p = nullptr;
  {
    const weir::pool gone = r.service->make_pool("gone");
    weir::lane l = r.service->lane(0, s, gone);
    p = l.allocate(5000);
  }
  block_info found;
  EXPECT_TRUE(r.service->query(p, found));
  r.machine->fill(s, p, 7, 5000);
  r.machine->synchronize(s);
  weir::deallocate(p);
  EXPECT_FALSE(r.service->query(p, found));
}

TEST_F(pools, buffers_free_themselves) {
  weir::lane l = r.service->lane(0, s);
  {
    weir::buffer<float> b(l, 1000);
    EXPECT_EQ(b.size(), 1000u);
    EXPECT_EQ(b.size_bytes(), 4000u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b.data()) % default_alignment, 0u);
    weir::buffer<float> moved(std::move(b));
    EXPECT_TRUE(b.empty());  // NOLINT(bugprone-use-after-move): that is what is tested
    EXPECT_EQ(b.data(), nullptr);
    EXPECT_EQ(r.statistics().live, 4096u);
    weir::buffer<float> other(l, 10);
    other = std::move(moved);
    EXPECT_EQ(other.size(), 1000u);
    EXPECT_EQ(r.statistics().live, 4096u) << "assignment frees what was there";
    float* kept = other.release();
    EXPECT_TRUE(other.empty());
    EXPECT_EQ(r.statistics().live, 4096u);
    l.deallocate(kept);
    weir::buffer<float> again(l, 10);
    again.reset();
    EXPECT_TRUE(again.empty());
    again.reset();
  }
  EXPECT_EQ(r.statistics().live, 0u);
}

TEST_F(pools, buffers_of_nothing_and_of_too_much) {
  weir::lane l = r.service->lane(0, s);
  const weir::buffer<double> nothing(l, 0);
  EXPECT_EQ(nothing.data(), nullptr);
  EXPECT_TRUE(nothing.empty());
  // Case B39: a count whose size in bytes wraps.
  EXPECT_THROW(weir::buffer<double>(l, (~std::size_t{0} / 8) + 2), weir::out_of_memory);
  struct alignas(4096) wide {
    char bytes[4096];
  };
  const weir::buffer<wide> aligned(l, 3);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned.data()) % 4096, 0u);
}

TEST_F(pools, an_empty_lane_serves_nothing) {
  weir::lane none;
  EXPECT_FALSE(none);
  EXPECT_EQ(none.try_allocate(100), nullptr);
  EXPECT_THROW(static_cast<void>(none.allocate(100)), weir::error);
  EXPECT_THROW(static_cast<void>(none.allocate(100, 512)), weir::error);
  none.deallocate(nullptr);
}

}  // namespace
}  // namespace weir::test
