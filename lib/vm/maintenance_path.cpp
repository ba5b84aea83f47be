#include "vm/maintenance_path.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

namespace weir::vm {

namespace {

void sleep_while(std::atomic<std::uint32_t>& word, std::uint32_t seen, std::chrono::nanoseconds at_most) noexcept {
  timespec t{};
  t.tv_sec = static_cast<time_t>(at_most.count() / 1000000000);
  t.tv_nsec = static_cast<long>(at_most.count() % 1000000000);
  ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, &t, nullptr, 0);
}

void wake_one(std::atomic<std::uint32_t>& word) noexcept {
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace

maintenance_path::pass maintenance_path::enter(std::chrono::nanoseconds patience) noexcept {
  using clock = std::chrono::steady_clock;
  const auto free_state = static_cast<std::uint32_t>(state::free);
  clock::time_point deadline{};  // set before the first sleep
  state as = state::held;
  std::uint32_t seen = word_.load(std::memory_order_relaxed);
  for (;;) {
    const bool was_free = state_of(seen) == free_state;
    bool late = false;
    if (!was_free) {
      const clock::time_point now = clock::now();
      if (deadline == clock::time_point{}) deadline = now + patience;
      late = now >= deadline;
      if (!late) {
        const std::uint32_t waited = pack(state::contended, holder_of(seen));
        if (seen != waited &&
            !word_.compare_exchange_weak(seen, waited, std::memory_order_relaxed, std::memory_order_relaxed)) {
          continue;
        }
        sleep_while(word_, waited, deadline - now);
        as = state::contended;  // others may sleep too: whoever follows a sleeper wakes the next one
        seen = word_.load(std::memory_order_relaxed);
        continue;
      }
      as = state::contended;
    }
    const std::uint32_t mine = (holder_of(seen) + 1) & (~std::uint32_t{0} >> 2);
    if (word_.compare_exchange_weak(seen, pack(as, mine), std::memory_order_acquire, std::memory_order_relaxed)) {
      return {this, mine, late};
    }
  }
}

void maintenance_path::leave(std::uint32_t holder) noexcept {
  std::uint32_t seen = word_.load(std::memory_order_relaxed);
  // Taken over meanwhile: the path is another's, who also wakes the sleepers.
  while (holder_of(seen) == holder) {
    if (!word_.compare_exchange_weak(seen, pack(state::free, holder), std::memory_order_release,
                                     std::memory_order_relaxed)) {
      continue;
    }
    if (state_of(seen) == static_cast<std::uint32_t>(state::contended)) wake_one(word_);
    return;
  }
}

}  // namespace weir::vm
