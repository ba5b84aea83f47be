#include "driver/sim/capture.hpp"

#include <algorithm>
#include <utility>

namespace weir::sim {

void capture::add(const stream_core& on, operation op) {
  const std::lock_guard lock(mutex_);
  nodes_.push_back(std::move(op));
  ++members_[&on].count;
}

capture_clock capture::clock_of(const stream_core& on) {
  const std::lock_guard lock(mutex_);
  member& m = members_[&on];
  capture_clock clock = m.clock;
  clock[&on] = m.count;
  return clock;
}

void capture::wait(const std::shared_ptr<stream_core>& on, const capture_clock& event) {
  const std::lock_guard lock(mutex_);
  member& m = members_[on.get()];
  if (m.core == nullptr) m.core = on;
  for (const auto& [core, count] : event) {
    std::uint64_t& seen = m.clock[core];
    seen = std::max(seen, count);
  }
}

bool capture::joined() {
  const std::lock_guard lock(mutex_);
  const capture_clock& last = members_[origin_].clock;
  return std::all_of(members_.begin(), members_.end(), [&](const auto& entry) {
    if (entry.first == origin_) return true;
    const auto seen = last.find(entry.first);
    return entry.second.count == (seen == last.end() ? 0 : seen->second);
  });
}

graph_nodes capture::end(std::vector<std::shared_ptr<stream_core>>& members) {
  const std::lock_guard lock(mutex_);
  ended_.store(true, std::memory_order_release);
  for (const auto& [core, m] : members_) members.push_back(m.core);
  return std::move(nodes_);
}

bool capture::touches(int device, bool blocking_only) {
  const std::lock_guard lock(mutex_);
  return std::any_of(members_.begin(), members_.end(), [&](const auto& entry) {
    return entry.second.core->device() == device && (!blocking_only || entry.second.core->blocking());
  });
}

}  // namespace weir::sim
