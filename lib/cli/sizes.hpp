#pragma once
// Numbers as people write and read them: 64K, 1.5GiB, 3.2 us.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::cli {

/// "4096", "64K", "1.5G", "2MiB", "3 GB": suffixes K, M, G, T (also with B or iB, any case) are powers of 1024.
/// Nothing if the text is anything else, negative, not a whole number of bytes without a suffix, or above 2^63.
[[nodiscard]] std::optional<std::uint64_t> parse_bytes(std::string_view text);

/// What `--limit` takes: bytes, or a multiple of the trace's peak ("1.03x").
struct limit_value {
  std::uint64_t bytes = 0;
  double times_peak = 0;  ///< 0: `bytes` counts
  [[nodiscard]] std::uint64_t of(std::uint64_t peak) const noexcept;
};
[[nodiscard]] std::optional<limit_value> parse_limit(std::string_view text);

/// Four significant digits and a unit: "0 B", "1.500 GiB", "640 B".
[[nodiscard]] std::string format_bytes(std::uint64_t bytes);

/// "12.3 ns", "4.56 us", "7.80 ms", "1.23 s".
[[nodiscard]] std::string format_seconds(double seconds);

/// "1,234,567".
[[nodiscard]] std::string format_count(std::uint64_t n);

}  // namespace weir::cli
