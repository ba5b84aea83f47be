#include "cli/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace weir::cli {

std::optional<double> trace::note(std::string_view key) const {
  const std::string wanted = std::string(key) + '=';
  std::size_t at = comment.find(wanted);
  // The whole word only: "reserved_peak=" is no part of "x_reserved_peak=".
  while (at != std::string::npos && at > 0 && comment[at - 1] != ' ') at = comment.find(wanted, at + 1);
  if (at == std::string::npos) return std::nullopt;
  const char* first = comment.data() + at + wanted.size();
  double value = 0;
  const auto [end, fault] = std::from_chars(first, comment.data() + comment.size(), value);
  if (fault != std::errc{}) return std::nullopt;
  return value;
}

std::string trace::place(std::size_t event) const { return fmt::format("{}:{}", path, events.at(event).line); }

void scale_trace(trace& t, double factor) {
  constexpr std::uint64_t kept = 64 << 10;
  std::uint64_t live = 0;
  t.peak_requested = 0;
  for (trace_event& e : t.events) {
    if (e.bytes > kept) e.bytes = static_cast<std::uint64_t>(static_cast<double>(e.bytes) * factor);
    live = e.allocate ? live + e.bytes : live - e.bytes;
    t.peak_requested = std::max(t.peak_requested, live);
  }
}

}  // namespace weir::cli
