// Case B35: a forked child's calls fail cleanly and never hang, and the parent is not harmed.

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/rig.hpp"

namespace weir::test {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr int forks = 20;
#else
constexpr int forks = 150;
#endif

// Gcc's asan does not keep its own malloc whole across a fork of several threads: its children hang by themselves.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool malloc_survives_fork = false;
#else
constexpr bool malloc_survives_fork = true;
#endif

// What a child found wrong, as its exit status; 0: nothing.
enum finding : int {
  fine = 0,
  gave_memory = 10,
  wrong_error,  // + the number of the call
};

// The exit status says which call did not fail as it should. No malloc-heavy test framework in the child.
int child_calls(weir::service& s, weir::lane l, void* live) {
  if (l.try_allocate(100) != nullptr || l.try_allocate(3 * mib) != nullptr || l.try_allocate(100, 4096) != nullptr ||
      s.try_allocate(100, 0, nullptr) != nullptr) {
    return gave_memory;
  }
  l.deallocate(live);
  weir::deallocate(live);
  s.deallocate(live);
  weir::deallocate(nullptr);
  s.collect();
  block_info found;
  static_cast<void>(s.query(live, found));
  const std::function<void()> calls[] = {[&] { static_cast<void>(l.allocate(100)); },
                                         [&] { static_cast<void>(s.allocate(100, 0, nullptr)); },
                                         [&] { static_cast<void>(s.lane(0, nullptr)); },
                                         [&] { static_cast<void>(s.make_pool("child")); },
                                         [&] { s.record_use(live, nullptr); },
                                         [&] { s.retire(0, nullptr); },
                                         [&] { s.quiesced(0); },
                                         [&] { s.trim(); },
                                         [&] { s.limit(0, 1); },
                                         [&] { static_cast<void>(s.limit(0)); },
                                         [&] { static_cast<void>(s.info(0)); },
                                         [&] { static_cast<void>(s.statistics()); },
                                         [&] { static_cast<void>(s.summary()); },
                                         [&] { const weir::service another(quiet()); },
                                         [&] { static_cast<void>(s.check()); }};
  int number = 0;
  for (const auto& call : calls) {
    ++number;
    try {
      call();
      return wrong_error + number;
    } catch (const weir::error& e) {
      if (e.code() != errc::not_after_fork) return wrong_error + number;
    }
  }
  return fine;
}

// Forks; the child's status, or -1 if it hung.
template <class Work>
int in_child(Work&& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);  // whatever happens to the parent
    ::_exit(work());
  }
  int status = 0;
  if (!eventually([&] { return ::waitpid(child, &status, WNOHANG) == child; }, std::chrono::seconds(30))) {
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
    return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -100 - WTERMSIG(status);
}

class fork_test : public testing::Test {
 protected:
  fork_test() : lane_(rig_.lane()), live_(lane_.allocate(1000)) {}
  ~fork_test() override {
    lane_.deallocate(live_);
    lane_ = {};
    rig_.finish();
  }
  rig rig_;
  weir::lane lane_;
  void* live_;
};

TEST_F(fork_test, every_call_of_a_child_fails_cleanly) {
  EXPECT_EQ(in_child([&] { return child_calls(*rig_.service, lane_, live_); }), fine);
  block_info found;
  EXPECT_TRUE(rig_.service->query(live_, found));
}

TEST_F(fork_test, a_child_may_end_the_service_and_exit) {
  const std::uint64_t calls = rig_.machine->calls("cuMemUnmap");
  EXPECT_EQ(in_child([&] {
              rig_.service.reset();
              lane_ = {};
              return fine;
            }),
            fine);
  EXPECT_EQ(rig_.machine->calls("cuMemUnmap"), calls);
  EXPECT_TRUE(rig_.machine->accessible(0, live_, 1000));
}

TEST_F(fork_test, case_B35_children_of_a_busy_parent_never_hang) {
  if (!malloc_survives_fork) GTEST_SKIP() << "malloc itself may hang in these children";
  std::atomic<bool> over{false};
  std::vector<std::jthread> busy;
  for (int i = 0; i < 4; ++i) {
    busy.emplace_back([&, i] {
      weir::lane l = lane_;
      for (int k = 0; !over; ++k) {
        void* p = l.allocate(static_cast<std::size_t>(1 + k % 50 * 3000));
        l.deallocate(p);
        if (k % 64 == 0) static_cast<void>(rig_.service->statistics());
        if (k % 512 == i) rig_.service->trim();
        if (k % 256 == i) static_cast<void>(rig_.service->make_pool("parent"));
        if (k % 128 == i) rig_.service->on_event([](const event&) {}, log_level::error);
        if (k % 1024 == i) weir::lane(l).deallocate(l.allocate(20 * mib));
      }
    });
  }
  int found = fine;
  for (int i = 0; i < forks && found == fine; ++i) {
    found = in_child([&] { return child_calls(*rig_.service, lane_, live_); });
  }
  over = true;
  busy.clear();
  EXPECT_EQ(found, fine);
  EXPECT_TRUE(rig_.misuses().empty());
}

TEST(fork, case_B35_a_fork_during_the_very_first_allocation) {
  if (!malloc_survives_fork) GTEST_SKIP() << "malloc itself may hang in these children";
  for (int i = 0; i < 20; ++i) {
    rig r;
    const stream_t s = r.stream();
    std::atomic<bool> started{false};
    void* p = nullptr;
    std::thread first([&] {
      started = true;
      p = r.service->allocate(1000, 0, s);
    });
    while (!started) {
    }
    const int found = in_child([&] { return r.service->try_allocate(1000, 0, s) == nullptr ? fine : gave_memory; });
    first.join();
    EXPECT_EQ(found, fine);
    r.service->deallocate(p);
  }
}

}  // namespace
}  // namespace weir::test
