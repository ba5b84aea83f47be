// C2: stop any thread at any instruction, and all others go on allocating and freeing.

#include <time.h>

#include <chrono>

#include "stopped/crowd.hpp"
#include "stopped/freezer.hpp"
#include "support/rig.hpp"

namespace weir::test {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr int rounds = 100;
constexpr std::uint64_t steps = 300;  // that each thread must make while others are stopped
#else
constexpr int rounds = 300;
constexpr std::uint64_t steps = 1000;
#endif
constexpr std::chrono::seconds patience{20};

struct setting {
  pattern what;
  bool shared;  // one lane for all
};

std::string name_of(const testing::TestParamInfo<setting>& i) {
  const char* names[] = {"small", "large", "mixed", "handoff"};
  return std::string(names[static_cast<int>(i.param.what)]) + (i.param.shared ? "_shared_lane" : "_own_lanes");
}

// The waits below allocate nothing: a stopped thread may hold malloc's lock.
void nap(std::uint64_t microseconds) noexcept {
  const timespec t{0, static_cast<long>(microseconds * 1000)};
  ::nanosleep(&t, nullptr);
}

class stopped : public testing::TestWithParam<setting> {
 protected:
  stopped() {
    // Memory that the lanes can serve everything from: what is wanted at most, four times over.
    const unsigned lanes = GetParam().shared ? 1 : crowd::most_threads;
    for (unsigned i = 0; i < crowd::most_threads; ++i) lanes_[i] = i < lanes ? rig_.lane() : lanes_[0];
    for (unsigned i = 0; i < lanes; ++i) lanes_[i].deallocate(lanes_[i].allocate(768 * mib));
  }
  ~stopped() override {
    lanes_ = {};
    rig_.finish();
  }

  static config options() {
    config c = quiet();
    c.growth_patience = std::chrono::milliseconds(100);
    c.idle_after = std::chrono::milliseconds(20);
    return c;
  }

  // Whether every thread that is not in `still` makes `steps` steps.
  static bool others_go_on(const crowd& c, unsigned still) noexcept {
    std::array<std::uint64_t, crowd::most_threads> before{};
    for (unsigned i = 0; i < c.size(); ++i) before[i] = c.done(i);
    const auto deadline = std::chrono::steady_clock::now() + patience;
    for (unsigned i = 0; i < c.size(); ++i) {
      if ((still >> i & 1) != 0) continue;
      while (c.done(i) < before[i] + steps) {
        if (std::chrono::steady_clock::now() > deadline) return false;
        nap(50);
      }
    }
    return true;
  }

  void expect_clean(const crowd& c) {
    EXPECT_EQ(c.refused(), 0u);
    EXPECT_EQ(c.given_twice(), 0u);
    EXPECT_TRUE(rig_.misuses().empty());
  }

  rig rig_{options(), devices(1, 16 * gib)};
  std::array<weir::lane, crowd::most_threads> lanes_;
};

TEST_P(stopped, others_go_on_while_threads_are_stopped) {
  const freezer cold;
  crowd c(GetParam().what, lanes_, crowd::most_threads);
  // A thread stopped while the system (or asan) starts it holds their locks, not Weir's.
  ASSERT_TRUE(others_go_on(c, 0)) << "not all threads started";
  const std::uint64_t handles = rig_.machine->calls("cuMemCreate");
  std::uint64_t dice = 88172645463325252u;
  for (int round = 0; round < rounds; ++round) {
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    nap(dice >> 33 & 127);
    // One in most rounds, two or three in some.
    const unsigned victims = (dice >> 50 & 3) == 0 ? 2 + (dice >> 52 & 1) : 1;
    const unsigned first = dice >> 55 & 3;
    unsigned still = 0;
    bool caught = true;
    for (unsigned v = 0; v < victims; ++v) {
      const unsigned i = (first + v) % crowd::most_threads;
      caught = caught && freezer::stop(c.thread(i));
      still |= 1u << i;
    }
    const bool went_on = others_go_on(c, still);
    freezer::release();
    ASSERT_TRUE(caught) << "round " << round;
    ASSERT_TRUE(went_on) << "round " << round << ": stopped threads (a mask) " << still << " held up others";
  }
  expect_clean(c);
  EXPECT_EQ(rig_.machine->calls("cuMemCreate"), handles) << "the memory was to be warm, but the heap grew";
}

TEST_P(stopped, all_go_on_while_the_maintenance_thread_is_stopped) {
  tracer t;
  if (!t.works()) GTEST_SKIP() << "this system lets no child trace its parent";
  const pid_t maintenance = thread_named("weir");
  ASSERT_NE(maintenance, 0) << "no maintenance thread runs";
  crowd c(GetParam().what, lanes_, crowd::most_threads);
  int caught = 0;
  for (int round = 0; round < rounds / 8; ++round) {
    const bool at_work = t.stop_at_work(maintenance, 1000);
    const bool went_on = !at_work || others_go_on(c, 0);
    if (at_work) t.release();
    ASSERT_TRUE(went_on) << "round " << round;
    caught += at_work ? 1 : 0;
  }
  EXPECT_GT(caught, 0) << "the maintenance thread was never met at work";
  expect_clean(c);
}

INSTANTIATE_TEST_SUITE_P(patterns, stopped,
                         testing::Values(setting{pattern::small, true}, setting{pattern::small, false},
                                         setting{pattern::large, true}, setting{pattern::large, false},
                                         setting{pattern::mixed, true}, setting{pattern::mixed, false},
                                         setting{pattern::handoff, true}, setting{pattern::handoff, false}),
                         name_of);

}  // namespace
}  // namespace weir::test
