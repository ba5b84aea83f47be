#pragma once
// The user's hooks, and what the service says when there is none. Hooks run with nothing held and may call back.

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "weir/service.hpp"

namespace weir::coordinator {

/// A hook that can be replaced at any time; reading it takes no lock. What was replaced lives as long as this.
template <class Function>
class hook_cell {
 public:
  void set(Function f) {
    auto next = f ? std::make_unique<Function>(std::move(f)) : nullptr;
    const std::lock_guard lock(mutex_);
    now_.store(next.get(), std::memory_order_release);  // pairs with the acquire in get
    if (next) kept_.push_back(std::move(next));
  }
  /// Null: none.
  [[nodiscard]] const Function* get() const noexcept { return now_.load(std::memory_order_acquire); }

 private:
  std::mutex mutex_;
  std::atomic<const Function*> now_{nullptr};
  std::vector<std::unique_ptr<Function>> kept_;
};

class hooks {
 public:
  hook_cell<service::out_of_memory_hook> out_of_memory;
  hook_cell<service::misuse_hook> misuse;
  hook_cell<service::event_hook> event;
  std::atomic<log_level> event_level{log_level::info};      // of the hook
  std::atomic<log_level> stderr_level{log_level::warning};  // without a hook
  std::atomic<std::uint64_t> misuses{0};

  /// Formats and sends an event if anybody listens at the level. Never throws; allocates nothing.
  void say(log_level level, int device, const char* format, ...) noexcept __attribute__((format(printf, 4, 5)));
  /// Counts and reports a misuse.
  void report(misuse::kind what, const void* address, const char* format, ...) noexcept
      __attribute__((format(printf, 4, 5)));
};

/// The hooks of the oldest service that lives, for faults that belong to none; null: none lives.
hooks* process_hooks() noexcept;
void list_hooks(hooks* h) noexcept;
void unlist_hooks(hooks* h) noexcept;

}  // namespace weir::coordinator
