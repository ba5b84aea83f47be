#pragma once
// Replays a trace on one device and measures what it cost.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "weir/config.hpp"

#include "cli/sizes.hpp"
#include "cli/trace.hpp"

namespace weir::cli {

struct replay_options {
  weir::config config = {};
  unsigned repeat = 1;
  unsigned copies = 1;     ///< of the trace, in lock-step, each on streams of its own
  limit_value limit;       ///< 0: none
  bool touch = false;      ///< write and verify every block, and look for overlaps
  bool sim_delay = false;  ///< calls of the simulated driver take as long as on a GPU
  bool progress = false;
};

/// What one replay of the whole trace cost.
struct replay_run {
  std::uint64_t events = 0;          ///< allocations and frees of all copies; blocks left over are freed besides
  std::uint64_t peak_requested = 0;  ///< bytes
  std::uint64_t peak_reserved = 0;
  double seconds = 0;                                 ///< of the events, driver calls left out
  std::map<std::string, std::uint64_t> driver_calls;  ///< by kind; those of freeing what was left over included
  double driver_seconds = 0;                          ///< on simulated devices what the calls would take on a GPU
  std::uint64_t metadata_bytes = 0;
  std::uint64_t addresses = 0;  ///< device addresses reserved at the end

  [[nodiscard]] double ratio() const noexcept;
  [[nodiscard]] double ns_per_event() const noexcept;
};

struct replay_result {
  std::string trace;
  bool simulated = false;
  std::vector<replay_run> runs;
  std::vector<std::string> faults;  ///< empty: all well

  /// All runs as one: peaks are the highest, calls and times the sums, events those of one run.
  [[nodiscard]] replay_run total() const;
  [[nodiscard]] double ns_per_event() const noexcept;  ///< over all runs
};

/// In a service of its own. Throws `usage_error`, `weir::error`, and `fault_error` for driver calls that fail.
[[nodiscard]] replay_result replay(const trace& t, const replay_options& options);

}  // namespace weir::cli
