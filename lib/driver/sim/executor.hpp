#pragma once
// The threads that run kernels. A kernel may block for as long as it likes (a barrier over streams, a spin on a host
// flag), so a waiting job never queues behind a running one while threads can still be made.

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

namespace weir::sim {

class stream_core;

class executor : public std::enable_shared_from_this<executor> {
 public:
  /// Runs `core->run_on_worker()` on one of the threads. Dropped after `stop`.
  void submit(std::shared_ptr<stream_core> core);

  /// Waits for running jobs, drops queued ones and ends all threads.
  void stop();

  [[nodiscard]] bool stopping() const;

 private:
  static constexpr int most_threads = 1000;
  static constexpr int idle_kept = 8;  // more threads than this do not stay when there is nothing to do

  void loop();

  mutable std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable ended_;
  std::deque<std::shared_ptr<stream_core>> queue_;
  int threads_ = 0;
  int idle_ = 0;
  bool stopping_ = false;
};

}  // namespace weir::sim
