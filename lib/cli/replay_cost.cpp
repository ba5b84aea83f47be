#include "cli/replay_cost.hpp"

#include <chrono>

namespace weir::cli {

cost_meter::known_calls cost_meter::of_library(rig& r) {
  known_calls out;
  for (const driver_call_count& c : r.service().statistics().driver_calls) out[c.name] = {c.calls, c.seconds};
  return out;
}

cost_meter::known_calls cost_meter::of_machine(rig& r) {
  known_calls out;
  if (r.machine() == nullptr) return out;
  for (const sim::call_record& c : r.machine()->calls()) {
    out[c.name] = {c.count, std::chrono::duration<double>(c.cost).count()};
  }
  return out;
}

cost_meter::cost_meter(rig& r) : rig_(r), library_(of_library(r)), machine_(of_machine(r)) {}

driver_cost cost_meter::read() const {
  driver_cost out;
  const known_calls machine = of_machine(rig_);
  for (const auto& [name, now] : of_library(rig_)) {
    const auto before = library_.find(name);
    const known start = before == library_.end() ? known{} : before->second;
    const std::uint64_t calls = now.calls - start.calls;
    if (calls == 0) continue;
    out.calls[name] = calls;
    out.host_seconds += now.seconds - start.seconds;
    const auto priced = machine.find(name);
    if (priced == machine.end()) continue;
    // The machine also sees calls that are not the library's (--touch): take the library's share.
    const auto unpriced = machine_.find(name);
    const known first = unpriced == machine_.end() ? known{} : unpriced->second;
    const std::uint64_t all = priced->second.calls - first.calls;
    if (all != 0) {
      out.seconds += (priced->second.seconds - first.seconds) * static_cast<double>(calls) / static_cast<double>(all);
    }
  }
  if (rig_.machine() == nullptr) out.seconds = out.host_seconds;
  return out;
}

}  // namespace weir::cli
