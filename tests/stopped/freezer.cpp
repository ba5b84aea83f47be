#include "stopped/freezer.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <fstream>
#include <string>

namespace weir::test {

namespace {

// The generation that frozen threads wait for the end of; how many are in the handler.
std::atomic<std::uint32_t> generation{0};
std::atomic<std::uint32_t> inside{0};

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) noexcept {
  return ::syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
}

// Only atomics and raw system calls: the thread may be anywhere, in a library's lock too.
extern "C" void weir_test_freeze(int) {
  const int saved = errno;
  const std::uint32_t mine = generation.load();
  inside.fetch_add(1);
  while (generation.load() == mine) futex(generation, FUTEX_WAIT, mine);
  inside.fetch_sub(1);
  errno = saved;
}

template <class Holds>
bool wait_until(Holds&& holds) noexcept {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    const timespec nap{0, 20000};
    ::nanosleep(&nap, nullptr);
  }
  return true;
}

}  // namespace

freezer::freezer() {
  struct sigaction action {};
  action.sa_handler = weir_test_freeze;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGUSR1, &action, nullptr);
}

freezer::~freezer() {
  release();
  ::signal(SIGUSR1, SIG_DFL);
}

bool freezer::stop(pthread_t thread) noexcept {
  const std::uint32_t before = inside.load();
  if (::pthread_kill(thread, SIGUSR1) != 0) return false;
  return wait_until([before] { return inside.load() > before; });
}

void freezer::release() noexcept {
  generation.fetch_add(1);
  futex(generation, FUTEX_WAKE, INT_MAX);
  wait_until([] { return inside.load() == 0; });
}

// --- the tracer ----------------------------------------------------------------------------------------------------

tracer::tracer() {
  int orders[2];
  int answers[2];
  if (::pipe(orders) != 0 || ::pipe(answers) != 0) return;
  child_ = ::fork();
  if (child_ == 0) {
    ::close(orders[1]);
    ::close(answers[0]);
    serve(orders[0], answers[1]);
  }
  ::close(orders[0]);
  ::close(answers[1]);
  orders_ = orders[1];
  answers_ = answers[0];
  if (child_ < 0) return;
  ::prctl(PR_SET_PTRACER, child_, 0, 0, 0);
  // A try on a thread that only sleeps: refused ("e") where tracing is not allowed.
  std::atomic<pid_t> id{0};
  std::atomic<std::uint32_t> end{0};
  struct sleeper {
    std::atomic<pid_t>* id;
    std::atomic<std::uint32_t>* end;
  } arguments{&id, &end};
  pthread_t thread{};
  const auto body = [](void* p) -> void* {
    const auto* a = static_cast<sleeper*>(p);
    a->id->store(static_cast<pid_t>(::syscall(SYS_gettid)));
    while (a->end->load() == 0) futex(*a->end, FUTEX_WAIT, 0);
    return nullptr;
  };
  if (::pthread_create(&thread, nullptr, body, &arguments) != 0) return;
  wait_until([&] { return id.load() != 0; });
  works_ = ask({id.load(), 1}) != 'e';
  end.store(1);
  futex(end, FUTEX_WAKE, 1);
  ::pthread_join(thread, nullptr);
}

tracer::~tracer() {
  if (child_ <= 0) return;
  ::close(orders_);  // the child ends, and with it every trace
  ::close(answers_);
  ::waitpid(child_, nullptr, 0);
}

char tracer::ask(order o) noexcept {
  char answer = 'e';
  if (::write(orders_, &o, sizeof o) != sizeof o) return 'e';
  while (::read(answers_, &answer, 1) < 0 && errno == EINTR) {
  }
  return answer;
}

bool tracer::stop_at_work(pid_t thread, int tries) noexcept { return ask({thread, tries}) == 's'; }
void tracer::release() noexcept { ask({0, 0}); }

// Stops the thread; true and stopped if it is not asleep in the kernel.
bool tracer::catch_at_work(pid_t thread) noexcept {
  int status = 0;
  if (::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) != 0 || ::waitpid(thread, &status, __WALL) != thread) {
    return false;
  }
  user_regs_struct registers{};
  ::ptrace(PTRACE_GETREGS, thread, nullptr, &registers);
  const auto call = static_cast<long>(registers.orig_rax);
  if (call != SYS_futex && call != SYS_clock_nanosleep && call != SYS_nanosleep) return true;
  ::ptrace(PTRACE_CONT, thread, nullptr, nullptr);
  return false;
}

void tracer::serve(int orders, int answers) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  order o{};
  pid_t held = 0;
  while (::read(orders, &o, sizeof o) == sizeof o) {
    char answer = 'r';
    if (o.thread == 0) {
      if (held != 0) ::ptrace(PTRACE_DETACH, held, nullptr, nullptr);
      held = 0;
    } else if (::ptrace(PTRACE_SEIZE, o.thread, nullptr, nullptr) != 0) {
      answer = 'e';
    } else {
      unsigned dice = static_cast<unsigned>(o.thread);
      for (int i = 0; i < o.tries && held == 0; ++i) {
        dice = dice * 1664525u + 1013904223u;
        const timespec nap{0, static_cast<long>(dice >> 16) % 100000};
        ::nanosleep(&nap, nullptr);
        if (catch_at_work(o.thread)) held = o.thread;
      }
      answer = held != 0 ? 's' : 'n';
      if (held == 0) {
        int status = 0;
        ::ptrace(PTRACE_INTERRUPT, o.thread, nullptr, nullptr);
        ::waitpid(o.thread, &status, __WALL);
        ::ptrace(PTRACE_DETACH, o.thread, nullptr, nullptr);
      }
    }
    if (::write(answers, &answer, 1) != 1) break;
  }
  ::_exit(0);
}

pid_t thread_named(const char* name) {
  DIR* tasks = ::opendir("/proc/self/task");
  if (tasks == nullptr) return 0;
  pid_t found = 0;
  while (const dirent* entry = ::readdir(tasks)) {
    if (entry->d_name[0] == '.') continue;
    std::ifstream comm(std::string("/proc/self/task/") + entry->d_name + "/comm");
    std::string text;
    if (std::getline(comm, text) && text == name) found = static_cast<pid_t>(std::atoi(entry->d_name));
  }
  ::closedir(tasks);
  return found;
}

}  // namespace weir::test
