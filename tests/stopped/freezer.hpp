#pragma once
// Stops threads of this process at whatever instruction they are, until they are let go.

#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>

namespace weir::test {

/// By SIGUSR1, whose handler sleeps: for threads that do not block it. One at a time in a process.
class freezer {
 public:
  freezer();
  ~freezer();
  freezer(const freezer&) = delete;
  freezer& operator=(const freezer&) = delete;

  /// Returns when the thread has stopped; false if it has not within 10 s. Allocates nothing.
  static bool stop(pthread_t thread) noexcept;
  /// Lets all go, and waits until they have left the handler.
  static void release() noexcept;
};

/// By ptrace, from a process of its own: stops threads that block signals.
class tracer {
 public:
  tracer();
  ~tracer();
  tracer(const tracer&) = delete;
  tracer& operator=(const tracer&) = delete;

  /// Whether the system lets a child trace this process.
  [[nodiscard]] bool works() const noexcept { return works_; }
  /// Stops the thread outside of sleeping system calls, if it is met there within `tries` looks; else it runs on, and
  /// false. Allocates nothing.
  bool stop_at_work(pid_t thread, int tries) noexcept;
  void release() noexcept;

 private:
  struct order {
    pid_t thread;  // 0: release
    int tries;
  };
  [[noreturn]] static void serve(int orders, int answers);
  static bool catch_at_work(pid_t thread) noexcept;
  char ask(order o) noexcept;

  pid_t child_ = -1;
  int orders_ = -1;
  int answers_ = -1;
  bool works_ = false;
};

/// The thread of this process that has that name, or 0.
pid_t thread_named(const char* name);

}  // namespace weir::test
