#include "driver/sim/executor.hpp"

#include <thread>
#include <utility>

#include "driver/sim/stream_core.hpp"

namespace weir::sim {

void executor::submit(std::shared_ptr<stream_core> core) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    queue_.push_back(std::move(core));
    if (static_cast<std::size_t>(idle_) < queue_.size() && threads_ < most_threads) {
      ++threads_;
      // Detached, and counted: a thread's last look at the executor is its own decrement under the mutex.
      std::thread([self = shared_from_this()] { self->loop(); }).detach();
    }
  }
  work_.notify_one();
}

void executor::loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (stopping_) break;
    if (queue_.empty()) {
      if (idle_ >= idle_kept) break;
      ++idle_;
      work_.wait(lock);
      --idle_;
      continue;
    }
    std::shared_ptr<stream_core> core = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    core->run_on_worker();
    core.reset();
    lock.lock();
  }
  --threads_;
  ended_.notify_all();
}

void executor::stop() {
  std::deque<std::shared_ptr<stream_core>> dropped;
  std::unique_lock lock(mutex_);
  stopping_ = true;
  dropped.swap(queue_);
  work_.notify_all();
  ended_.wait(lock, [&] { return threads_ == 0; });
}

bool executor::stopping() const {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

}  // namespace weir::sim
