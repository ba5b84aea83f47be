#pragma once
// Physical handles as the driver numbers them. A handle says whose memory it is; a released number comes back at once.

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "driver/sim/physical.hpp"

namespace weir::sim {

/// The handles of one device or host node.
class handle_table {
 public:
  /// `owner` counts devices first, then nodes.
  explicit handle_table(unsigned owner) : owner_(owner) {}

  static constexpr unsigned owner_of(std::uint64_t handle) noexcept {
    return static_cast<unsigned>(handle >> 32) - 1;  // wraps for handles that never were one
  }

  /// A new handle with one reference.
  std::uint64_t add(std::shared_ptr<physical> memory) {
    const std::lock_guard lock(mutex_);
    return add_locked(std::move(memory));
  }

  /// One more reference to the handle of memory that is mapped; a new handle if its own was released.
  std::uint64_t retain(const std::shared_ptr<physical>& memory) {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (entries_[i].memory != memory) continue;
      ++entries_[i].references;
      return number(i);
    }
    return add_locked(memory);
  }

  [[nodiscard]] std::shared_ptr<physical> find(std::uint64_t handle) {
    const std::lock_guard lock(mutex_);
    const std::size_t index = (handle & 0xffffffffU) - 1;
    return index < entries_.size() ? entries_[index].memory : nullptr;
  }

  /// Drops one reference; the memory stays while it is mapped. False if there is no such handle.
  bool release(std::uint64_t handle) {
    std::shared_ptr<physical> last;  // destroyed after the lock
    const std::lock_guard lock(mutex_);
    const std::size_t index = (handle & 0xffffffffU) - 1;
    if (index >= entries_.size() || entries_[index].memory == nullptr) return false;
    if (--entries_[index].references == 0) {
      last.swap(entries_[index].memory);
      free_.push_back(index);
    }
    return true;
  }

  /// Every handle dies: the device was reset. Gives out what they held.
  std::vector<std::shared_ptr<physical>> clear() {
    std::vector<std::shared_ptr<physical>> held;
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (entries_[i].memory == nullptr) continue;
      held.push_back(std::move(entries_[i].memory));
      entries_[i] = {};
      free_.push_back(i);
    }
    return held;
  }

  template <class F>
  void each(F f) {
    const std::lock_guard lock(mutex_);
    for (const entry& e : entries_) {
      if (e.memory != nullptr) f(*e.memory);
    }
  }

 private:
  struct entry {
    std::shared_ptr<physical> memory;
    unsigned references = 0;
  };
  std::uint64_t add_locked(std::shared_ptr<physical> memory) {
    std::size_t index = entries_.size();
    if (free_.empty()) {
      entries_.emplace_back();
    } else {
      index = free_.back();
      free_.pop_back();
    }
    entries_[index] = {std::move(memory), 1};
    return number(index);
  }
  [[nodiscard]] std::uint64_t number(std::size_t index) const noexcept {
    return (static_cast<std::uint64_t>(owner_ + 1) << 32) | (index + 1);
  }

  const unsigned owner_;
  std::mutex mutex_;
  std::vector<entry> entries_;
  std::vector<std::size_t> free_;
};

}  // namespace weir::sim
