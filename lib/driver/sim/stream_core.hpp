#pragma once
// One stream's queue of work. It outlives the stream's handle: a destroyed stream's work still runs, and what waits for
// it still waits for the right thing.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <variant>
#include <vector>

#include "weir/simulation.hpp"

#include "driver/sim/executor.hpp"

namespace weir::sim {

class capture;
class stream_core;

/// A place in a stream: reached when that many of the stream's operations are done.
struct point {
  std::shared_ptr<stream_core> core;
  std::uint64_t sequence = 0;
  [[nodiscard]] bool reached() const noexcept;
};

/// A stream that is parked until something happens. The number keeps a late wake-up from waking a later sleep.
struct sleeper {
  std::weak_ptr<stream_core> core;
  std::uint64_t number = 0;
  std::uint64_t sequence = 0;  // used by streams: wake when this much is done
};

/// When a timing event was reached, in steady_clock's nanoseconds; 0: not yet.
using stamp = std::atomic<std::int64_t>;

/// A host function that a stream runs. `runs_inline`: short, and may run in the caller's thread on an eager machine.
struct kernel {
  std::function<void()> function;
  int device = 0;
  bool runs_inline = false;
};

using operation = std::variant<point, gate, std::shared_ptr<stamp>, kernel>;

/// What a stream needs from its machine.
class stream_host {
 public:
  /// Runs a kernel with all that surrounds it (view's checks, faults).
  virtual void run(const kernel& work, stream_core& on) = 0;
  /// Whether the device was lost: its queued work is dropped.
  [[nodiscard]] virtual bool lost(int device) const noexcept = 0;

 protected:
  ~stream_host() = default;
};

class stream_core : public std::enable_shared_from_this<stream_core> {
 public:
  stream_core(stream_host& host, std::shared_ptr<executor> threads, int device, std::uint64_t id, bool blocking)
      : host_(host), threads_(std::move(threads)), device_(device), id_(id), blocking_(blocking) {}

  [[nodiscard]] int device() const noexcept { return device_; }
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
  [[nodiscard]] bool blocking() const noexcept { return blocking_; }

  /// Adds an operation; runs it at once where that needs no thread. Points already reached are not added.
  void add(operation op, bool eager = false);

  /// All that was added so far.
  [[nodiscard]] point tail();
  [[nodiscard]] bool done(std::uint64_t sequence) const noexcept {
    return completed_.load(std::memory_order_acquire) >= sequence;
  }
  [[nodiscard]] bool busy() const noexcept { return !done(submitted_.load(std::memory_order_acquire)); }

  /// Blocks the calling thread until the point is reached (lost devices drop their work, so it always comes).
  void wait_for(std::uint64_t sequence);

  /// Goes on if it is parked: used when its device is lost.
  void wake_if_parked();
  /// Whatever is queued, and comes, is dropped: its context is gone.
  void drop();
  void run_on_worker();

  /// Wakes streams whose awaited thing has happened. Runs no kernel in the calling thread.
  static void wake(std::vector<sleeper> sleepers);

  std::mutex capture_mutex;             // guards the next
  std::shared_ptr<capture> capturing;   // the capture this stream takes part in
  std::atomic<bool> in_capture{false};  // the same, to be asked without the lock

 private:
  enum class place { caller, eager_caller, worker };

  void advance(place where);
  bool perform(operation& op, place where);
  [[nodiscard]] bool dead() const noexcept { return dropped_.load(std::memory_order_acquire) || host_.lost(device_); }
  template <class Register>
  bool park(Register register_sleeper);
  bool unpark(std::uint64_t number);
  bool add_sleeper(const sleeper& s);
  void finish();

  stream_host& host_;
  const std::shared_ptr<executor> threads_;
  const int device_;
  const std::uint64_t id_;
  const bool blocking_;

  std::mutex mutex_;
  std::condition_variable progress_;
  std::deque<operation> queue_;
  std::vector<sleeper> sleepers_;
  std::atomic<std::uint64_t> submitted_{0};
  std::atomic<std::uint64_t> completed_{0};
  std::uint64_t sleep_number_ = 0;
  int host_waiters_ = 0;
  bool owned_ = false;  // somebody is carrying the queue on, or it is parked
  bool parked_ = false;
  std::atomic<bool> dropped_{false};
};

inline bool point::reached() const noexcept { return core == nullptr || core->done(sequence); }

/// A gate's inside.
struct gate::state {
  std::mutex mutex;
  std::atomic<bool> open{false};
  std::vector<sleeper> sleepers;
};

}  // namespace weir::sim
