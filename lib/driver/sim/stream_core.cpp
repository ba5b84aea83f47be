#include "driver/sim/stream_core.hpp"

#include <chrono>
#include <utility>

namespace weir::sim {
namespace {

// Set while this thread wakes streams: what those wake in turn joins the list instead of deepening the stack.
thread_local std::vector<sleeper>* waking = nullptr;

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

void stream_core::add(operation op, bool eager) {
  if (const point* p = std::get_if<point>(&op); p != nullptr && p->reached()) return;
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(op));
    submitted_.fetch_add(1, std::memory_order_release);
    if (owned_) return;
    owned_ = true;
  }
  advance(eager ? place::eager_caller : place::caller);
}

point stream_core::tail() { return {shared_from_this(), submitted_.load(std::memory_order_acquire)}; }

void stream_core::run_on_worker() { advance(place::worker); }

// Carries the queue on until it is empty, parked or handed to a worker. Only the owner calls it.
void stream_core::advance(place where) {
  const std::shared_ptr<stream_core> self = shared_from_this();
  for (;;) {
    operation* op = nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (queue_.empty()) {
        owned_ = false;
        return;
      }
      op = &queue_.front();  // stays put: others only push at the back
    }
    if (!perform(*op, where)) return;
    finish();
  }
}

// True when the operation is done; false when somebody else carries on.
bool stream_core::perform(operation& op, place where) {
  if (auto* reached = std::get_if<std::shared_ptr<stamp>>(&op)) {
    (*reached)->store(now(), std::memory_order_release);
    return true;
  }
  if (dead()) return true;
  if (const point* p = std::get_if<point>(&op)) {
    const point target = *p;
    if (target.reached()) return true;
    return park([&](const sleeper& s) {
      sleeper with_sequence = s;
      with_sequence.sequence = target.sequence;
      return target.core->add_sleeper(with_sequence);
    });
  }
  if (const gate* g = std::get_if<gate>(&op)) {
    const gate until = *g;
    if (until.is_open()) return true;
    return park([&](const sleeper& s) { return until.add_sleeper(s); });
  }
  const auto& work = std::get<kernel>(op);
  if (where == place::caller || (where == place::eager_caller && !work.runs_inline)) {
    threads_->submit(shared_from_this());
    return false;
  }
  host_.run(work, *this);
  return true;
}

// Parks the stream unless what it waits for has happened. True: go on.
template <class Register>
bool stream_core::park(Register register_sleeper) {
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    parked_ = true;
    number = ++sleep_number_;
  }
  // From here on a waker may own the stream. Looking at `dead` again closes the gap with wake_if_parked.
  if (register_sleeper(sleeper{weak_from_this(), number, 0}) && !dead()) return false;
  return unpark(number);
}

bool stream_core::unpark(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  if (!parked_ || sleep_number_ != number) return false;
  parked_ = false;
  return true;
}

void stream_core::wake_if_parked() {
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!parked_) return;
    number = sleep_number_;
  }
  wake({sleeper{weak_from_this(), number, 0}});
}

void stream_core::drop() {
  dropped_.store(true, std::memory_order_release);
  wake_if_parked();
}

bool stream_core::add_sleeper(const sleeper& s) {
  const std::lock_guard lock(mutex_);
  if (done(s.sequence)) return false;
  sleepers_.push_back(s);
  return true;
}

// Counts the front operation as done and wakes what waited for it.
void stream_core::finish() {
  operation finished = std::shared_ptr<stamp>();  // destroyed after the lock: a kernel's captures may do anything
  std::vector<sleeper> ready;
  {
    const std::lock_guard lock(mutex_);
    finished = std::move(queue_.front());
    queue_.pop_front();
    const std::uint64_t count = completed_.fetch_add(1, std::memory_order_acq_rel) + 1;
    for (std::size_t i = 0; i < sleepers_.size();) {
      if (sleepers_[i].sequence > count) {
        ++i;
        continue;
      }
      ready.push_back(std::move(sleepers_[i]));
      sleepers_[i] = std::move(sleepers_.back());
      sleepers_.pop_back();
    }
    if (host_waiters_ > 0) progress_.notify_all();
  }
  if (!ready.empty()) wake(std::move(ready));
}

void stream_core::wake(std::vector<sleeper> sleepers) {
  if (waking != nullptr) {
    waking->insert(waking->end(), sleepers.begin(), sleepers.end());
    return;
  }
  waking = &sleepers;
  while (!sleepers.empty()) {
    const sleeper next = std::move(sleepers.back());
    sleepers.pop_back();
    const std::shared_ptr<stream_core> core = next.core.lock();
    if (core != nullptr && !core->threads_->stopping() && core->unpark(next.number)) core->advance(place::caller);
  }
  waking = nullptr;
}

void stream_core::wait_for(std::uint64_t sequence) {
  if (done(sequence)) return;
  std::unique_lock lock(mutex_);
  ++host_waiters_;
  progress_.wait(lock, [&] { return done(sequence); });
  --host_waiters_;
}

}  // namespace weir::sim
