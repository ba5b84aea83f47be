#include "coordinator/maintenance.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>

#include "cache/taking.hpp"
#include "coordinator/lane_directory.hpp"
#include "coordinator/lanes.hpp"
#include "vm/pending.hpp"
#include "vm/trim.hpp"

namespace weir::coordinator {

namespace {

// What retired lanes still hold goes back; those that hold nothing any more end, and their numbers serve again.
void end_empty_lanes(core& c) noexcept {
  for_each_lane(c, [&](lane_state& l) {
    if (!l.base.retired.load(std::memory_order_acquire)) return;
    if (l.base.memory.prepared() && l.base.memory.mapped_bytes.load(std::memory_order_acquire) != 0) {
      gather(l);
      vm::retire_free_chunks(l.base, 0);
    }
    end_if_empty(c, l);
  });
}

// Whether anything could need the thread at its next round.
bool anything_held(const core& c) noexcept {
  return std::any_of(c.devices.begin(), c.devices.end(), [](const auto& d) {
    return d->memory.reserved() != 0 && !d->memory.lost.load(std::memory_order_relaxed);
  });
}

void run(core& c) noexcept {
  pthread_setname_np(pthread_self(), "weir");
  // Signals are the program's business.
  sigset_t every;
  sigfillset(&every);
  pthread_sigmask(SIG_BLOCK, &every, nullptr);
  const auto tick = std::max(std::chrono::milliseconds(10), c.options.idle_after / 4);
  auto next_idle = std::chrono::steady_clock::now() + c.options.idle_after;
  std::unique_lock lock(c.maintenance_mutex);
  while (!c.maintenance_ends) {
    if (anything_held(c)) {
      c.maintenance_wakes.wait_for(lock, tick);
    } else {
      c.maintenance_wakes.wait(lock);
    }
    if (c.maintenance_ends) return;
    lock.unlock();
    const auto now = std::chrono::steady_clock::now();
    const bool idle = now >= next_idle;
    if (idle) next_idle = now + c.options.idle_after;
    maintain(c, idle);
    lock.lock();
  }
}

}  // namespace

void maintain(core& c, bool idle) noexcept {
  const std::lock_guard round(c.maintenance_round);
  drain_limbo(c);
  const walk here(c);
  for (const auto& d : c.devices) {
    if (d->memory.context() == nullptr || d->memory.lost.load(std::memory_order_acquire)) continue;
    vm::collect(d->memory, nullptr);
    vm::finish_retiring(d->memory);
  }
  end_empty_lanes(c);
  if (idle) for_each_lane(c, [](lane_state& l) { cache::take_idle_caches(l.number()); });
}

void start_maintenance(core& c) noexcept {
  if (!c.options.maintenance || c.ending.load(std::memory_order_acquire)) return;
  if (c.maintenance_started.exchange(true, std::memory_order_acq_rel)) {
    c.maintenance_wakes.notify_one();
    return;
  }
  try {
    c.maintenance_thread = std::thread([&c] { run(c); });
  } catch (const std::exception& e) {
    c.told.say(log_level::warning, -1, "no maintenance thread: %s; its work is done inline", e.what());
  }
}

void end_maintenance(core& c) noexcept {
  {
    const std::lock_guard lock(c.maintenance_mutex);
    c.maintenance_ends = true;
  }
  c.maintenance_wakes.notify_all();
  // A start that was under way has set the flag before it made the thread; services end with nobody inside.
  if (c.maintenance_thread.joinable()) c.maintenance_thread.join();
}

}  // namespace weir::coordinator
