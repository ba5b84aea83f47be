#pragma once
// Threads that start a piece of work at the same moment and say when the last of them was done.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace weir::bench {

// Waits a little for another thread; gives the core away after a while, so that more threads than cores still move.
class patience {
 public:
  void wait() noexcept {
    if (++turns_ < 256) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    } else {
      std::this_thread::yield();
    }
  }

 private:
  int turns_ = 0;
};

// Member 0 is the caller itself, so that the benchmark library's own clock sees the work too.
class team {
 public:
  team(std::size_t members, void (*thread_init)());
  ~team();
  team(const team&) = delete;
  team& operator=(const team&) = delete;

  // Runs `work(member)` on all members at once. Returns the seconds from the common start to the last one's end.
  template <class Work>
  double run(const Work& work) {
    work_ = [](const void* w, std::size_t member) { (*static_cast<const Work*>(w))(member); };
    argument_ = &work;
    return run();
  }

  [[nodiscard]] std::size_t size() const noexcept { return ends_.size(); }

  // A member that throws, or says so itself, fails the team; its work must not wait for a failed team.
  [[nodiscard]] bool failed() const noexcept { return failed_.load(std::memory_order_relaxed); }
  void fail(const std::string& why);
  [[nodiscard]] std::string failure() const { return failed() ? failure_ : std::string(); }

 private:
  using clock = std::chrono::steady_clock;
  struct alignas(64) end {
    clock::time_point at;
  };

  double run();
  void serve(std::size_t member, void (*thread_init)());
  void take_part(std::size_t member);

  void (*work_)(const void*, std::size_t) = nullptr;
  const void* argument_ = nullptr;
  clock::time_point start_;
  std::vector<end> ends_;
  std::vector<std::thread> threads_;
  alignas(64) std::atomic<unsigned> round_{0};
  alignas(64) std::atomic<std::size_t> ready_{0};
  alignas(64) std::atomic<unsigned> go_{0};
  alignas(64) std::atomic<std::size_t> done_{0};
  std::atomic<bool> stop_{false};
  std::atomic<bool> failed_{false};
  std::mutex failure_mutex_;
  std::string failure_;
};

}  // namespace weir::bench
