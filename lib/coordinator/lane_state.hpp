#pragma once
// What stands behind weir::lane and weir::pool handles.

#include <atomic>
#include <cstdint>
#include <string>

#include "vm/lane.hpp"

namespace weir {

namespace coordinator {
struct core;
struct device_state;
}  // namespace coordinator

/// A pool: a name and a count. Lanes and handles hold it.
class pool_state {
 public:
  pool_state(coordinator::core& c, std::string_view name) : owner(&c), text(name) {}

  void hold() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  /// The last one deletes it.
  void drop() noexcept {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  std::atomic<coordinator::core*> owner;  // null once the service is gone
  const std::string text;

 private:
  ~pool_state() = default;
  std::atomic<std::uint32_t> references_{1};
};

/// A lane. Type-stable and process-wide (lane_directory): a handle that outlives its service finds `core` null.
class lane_state {
 public:
  vm::lane base;  // first: heap->owner leads to either

  std::atomic<coordinator::core*> core{nullptr};  // null: the lane has ended
  coordinator::device_state* device = nullptr;
  pool_state* pool = nullptr;
  long creator = 0;                        // thread, for per-thread default streams
  std::atomic<lane_state*> next{nullptr};  // in its bucket of the service's table

  [[nodiscard]] std::uint32_t number() const noexcept { return base.heap->number(); }
  /// The lane as the one whose stream the caller names: a per-thread default stream is another one in other threads.
  [[nodiscard]] const vm::lane* named_here() const noexcept;
};

inline lane_state& lane_state_of(const heap::lane_heap& h) noexcept { return *static_cast<lane_state*>(h.owner); }

}  // namespace weir
