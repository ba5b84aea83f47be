#include "cli/sizes.hpp"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cmath>

namespace weir::cli {
namespace {

constexpr double most_bytes = 9223372036854775808.0;  // 2^63

// A plain decimal number at the front of `text`, which is moved past it. No sign, no exponent, no "inf".
std::optional<double> take_number(std::string_view& text) {
  std::size_t n = 0;
  while (n < text.size() && (std::isdigit(static_cast<unsigned char>(text[n])) != 0 || text[n] == '.')) ++n;
  double value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + n, value, std::chars_format::fixed);
  if (n == 0 || fault != std::errc{} || end != text.data() + n) return std::nullopt;
  text.remove_prefix(n);
  return value;
}

// The factor of a suffix; nothing if it is none.
std::optional<double> unit_of(std::string_view suffix) {
  std::string s;
  for (const char c : suffix) s += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (s.empty() || s == "B") return 1.0;
  constexpr std::string_view letters = "KMGT";
  const std::size_t at = letters.find(s[0]);
  const std::string_view rest = std::string_view(s).substr(1);
  if (at == std::string_view::npos || !(rest.empty() || rest == "B" || rest == "IB")) return std::nullopt;
  return std::ldexp(1.0, static_cast<int>(10 * (at + 1)));
}

}  // namespace

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  // Plain whole numbers apart: a double holds only 53 bits.
  std::uint64_t whole = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), whole);
  if (fault == std::errc{} && end == text.data() + text.size()) {
    return whole <= std::uint64_t{1} << 63 ? std::optional(whole) : std::nullopt;
  }
  const std::optional<double> number = take_number(text);
  if (!number) return std::nullopt;
  if (!text.empty() && text[0] == ' ') text.remove_prefix(1);
  const std::optional<double> unit = unit_of(text);
  if (!unit || *number * *unit > most_bytes) return std::nullopt;
  if (*unit == 1.0 && *number != std::floor(*number)) return std::nullopt;
  return static_cast<std::uint64_t>(std::llround(std::min(*number * *unit, 9.2e18)));
}

std::uint64_t limit_value::of(std::uint64_t peak) const noexcept {
  return times_peak > 0 ? static_cast<std::uint64_t>(std::ceil(times_peak * static_cast<double>(peak))) : bytes;
}

std::optional<limit_value> parse_limit(std::string_view text) {
  if (!text.empty() && (text.back() == 'x' || text.back() == 'X')) {
    std::string_view rest = text.substr(0, text.size() - 1);
    const std::optional<double> times = take_number(rest);
    if (!times || !rest.empty() || *times <= 0 || *times > 1000) return std::nullopt;
    return limit_value{0, *times};
  }
  const std::optional<std::uint64_t> bytes = parse_bytes(text);
  if (!bytes) return std::nullopt;
  return limit_value{*bytes, 0};
}

std::string format_bytes(std::uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  constexpr std::string_view units = "BKMGTPE";
  for (; value >= 1023.95 && unit + 1 < units.size(); ++unit) value /= 1024;
  const int digits = value < 10 ? 3 : value < 100 ? 2 : 1;
  return fmt::format("{:.{}f} {}iB", value, digits, units[unit]);
}

std::string format_seconds(double seconds) {
  if (seconds == 0) return "0 s";
  struct unit {
    double size;
    const char* name;
  };
  constexpr unit units[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
  for (const unit& u : units) {
    if (seconds >= u.size || u.size == 1e-9) return fmt::format("{:.3g} {}", seconds / u.size, u.name);
  }
  return {};
}

std::string format_count(std::uint64_t n) {
  const std::string digits = std::to_string(n);
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

}  // namespace weir::cli
