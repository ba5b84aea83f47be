#include "driver/sim/thread_state.hpp"

#include <pthread.h>

#include <atomic>

#include "driver/sim/machine_state.hpp"

namespace weir::sim {
namespace {

thread_local thread_state* current = nullptr;  // trivially destructible: valid in every thread-exit destructor
std::atomic<std::uint64_t> next_number{1};
std::atomic<bool> forked{false};

void end_of_thread(void* state) {
  auto* ending = static_cast<thread_state*>(state);
  current = nullptr;
  for (unsigned slot = 0; slot < machine_slots; ++slot) {
    if (ending->views[slot] != nullptr) machine_state::thread_ends(slot, *ending->views[slot]);
  }
  delete ending;
}

// A pthread key and not a thread_local object: keys end later, and again if a late destructor calls the driver.
pthread_key_t thread_key() {
  static const pthread_key_t key = [] {
    pthread_key_t made{};
    pthread_key_create(&made, end_of_thread);
    pthread_atfork(nullptr, nullptr, [] { forked.store(true, std::memory_order_relaxed); });
    return made;
  }();
  return key;
}

}  // namespace

thread_state& this_thread() {
  if (current == nullptr) {
    auto made = std::make_unique<thread_state>();
    made->number = next_number.fetch_add(1, std::memory_order_relaxed);
    pthread_setspecific(thread_key(), made.get());
    current = made.release();
  }
  return *current;
}

bool in_forked_child() noexcept { return forked.load(std::memory_order_relaxed); }

}  // namespace weir::sim
