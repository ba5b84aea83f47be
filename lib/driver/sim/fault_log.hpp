#pragma once
// What went wrong on a simulated machine.

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "weir/simulation.hpp"

namespace weir::sim {

class fault_log {
 public:
  void report(fault_kind kind, std::string text, int device = -1, std::uint64_t stream_id = 0) {
    const fault f{kind, std::move(text), device, stream_id};
    std::shared_ptr<std::function<void(const fault&)>> hook;
    {
      const std::lock_guard lock(mutex_);
      if (faults_.size() < most_kept) faults_.push_back(f);
      hook = hook_;
    }
    if (hook != nullptr && *hook) (*hook)(f);
  }

  [[nodiscard]] std::vector<fault> all() const {
    const std::lock_guard lock(mutex_);
    return faults_;
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    faults_.clear();
  }
  void set_hook(std::function<void(const fault&)> hook) {
    auto made = std::make_shared<std::function<void(const fault&)>>(std::move(hook));
    const std::lock_guard lock(mutex_);
    hook_.swap(made);
  }

 private:
  static constexpr std::size_t most_kept = 1000;
  mutable std::mutex mutex_;
  std::vector<fault> faults_;
  std::shared_ptr<std::function<void(const fault&)>> hook_;
};

}  // namespace weir::sim
