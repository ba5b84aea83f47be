#pragma once
// A recorded sequence of allocations and frees, read whole and checked, ready to be replayed or fed to a model.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::cli {

/// One step. Blocks are dense numbers, given out in the order of the allocations: an array indexed by them is all that
/// a replay needs.
struct trace_event {
  std::uint64_t bytes = 0;  ///< asked for; a free repeats the size of its allocation
  std::uint32_t block = 0;
  std::uint32_t stream = 0;  ///< dense; a free may name another stream than its allocation
  std::uint32_t line = 0;    ///< of the file, from 1
  bool allocate = false;
};

struct trace {
  std::string path;
  std::string comment;  ///< the `#` line without the mark, "" where there is none
  std::vector<trace_event> events;
  std::size_t blocks = 0;            ///< how many were allocated
  std::size_t streams = 0;           ///< how many were named
  std::size_t live_at_end = 0;       ///< blocks that no event frees
  std::uint64_t peak_requested = 0;  ///< highest sum of live sizes

  /// The number behind `key=` in the comment ("run_seconds", "reserved_peak_default").
  [[nodiscard]] std::optional<double> note(std::string_view key) const;

  /// "path:line", for messages.
  [[nodiscard]] std::string place(std::size_t event) const;
};

/// Reads a trace, gzipped or plain: `op,id,bytes,stream` (tests/traces/README.md) or RMM's log
/// `Thread,Time,Action,Pointer,Size,Stream`. Throws `usage_error` that names file, line and fault.
[[nodiscard]] trace read_trace(const std::string& path);

/// Multiplies the sizes above 64 KiB (what training varies; the small ones are scalars and lengths).
void scale_trace(trace& t, double factor);

}  // namespace weir::cli
