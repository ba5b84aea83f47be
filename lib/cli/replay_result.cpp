#include <algorithm>

#include "cli/replay.hpp"

namespace weir::cli {

double replay_run::ratio() const noexcept {
  return peak_requested == 0 ? 0.0 : static_cast<double>(peak_reserved) / static_cast<double>(peak_requested);
}

double replay_run::ns_per_event() const noexcept {
  return events == 0 ? 0.0 : seconds * 1e9 / static_cast<double>(events);
}

replay_run replay_result::total() const {
  replay_run all;
  for (const replay_run& r : runs) {
    all.events = r.events;
    all.peak_requested = std::max(all.peak_requested, r.peak_requested);
    all.peak_reserved = std::max(all.peak_reserved, r.peak_reserved);
    all.seconds += r.seconds;
    for (const auto& [name, calls] : r.driver_calls) all.driver_calls[name] += calls;
    all.driver_seconds += r.driver_seconds;
    all.metadata_bytes = std::max(all.metadata_bytes, r.metadata_bytes);
    all.addresses = std::max(all.addresses, r.addresses);
  }
  return all;
}

double replay_result::ns_per_event() const noexcept {
  const double mean = total().ns_per_event();
  return runs.empty() ? 0.0 : mean / static_cast<double>(runs.size());
}

}  // namespace weir::cli
