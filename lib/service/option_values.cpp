#include "service/option_values.hpp"

#include <array>
#include <cctype>
#include <charconv>
#include <limits>
#include <utility>

namespace weir::service_detail {

namespace {

// Names of the values of an enumeration or truth value; the first one of a value is the one printed.
template <class Value, std::size_t Count>
using names = std::array<std::pair<std::string_view, Value>, Count>;

constexpr names<backend, 4> backends{{{"auto", backend::automatic},
                                      {"cuda", backend::cuda},
                                      {"sim", backend::simulated},
                                      {"simulated", backend::simulated}}};
constexpr names<log_level, 5> levels{{{"off", log_level::off},
                                      {"error", log_level::error},
                                      {"warning", log_level::warning},
                                      {"info", log_level::info},
                                      {"debug", log_level::debug}}};
constexpr names<bool, 8> truths{{{"on", true},
                                 {"off", false},
                                 {"1", true},
                                 {"0", false},
                                 {"true", true},
                                 {"false", false},
                                 {"yes", true},
                                 {"no", false}}};

constexpr std::string_view size_letters = "KMGT";

bool same(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(a[i])) != std::tolower(static_cast<unsigned char>(b[i]))) return false;
  }
  return true;
}

template <class Value, std::size_t Count>
bool read_name(std::string_view text, const names<Value, Count>& known, Value& out) noexcept {
  for (const auto& [name, value] : known) {
    if (!same(text, name)) continue;
    out = value;
    return true;
  }
  return false;
}

template <class Value, std::size_t Count>
std::string print_name(Value value, const names<Value, Count>& known) {
  for (const auto& [name, v] : known) {
    if (v == value) return std::string(name);
  }
  return std::to_string(static_cast<int>(value));  // no value of the enumeration
}

// The whole number that `text` begins with, which is moved past it and one blank. No sign.
template <class Number>
bool take_number(std::string_view& text, Number& out) noexcept {
  if (text.empty() || text[0] < '0' || text[0] > '9') return false;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (fault != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (text.size() > 1 && text[0] == ' ') text.remove_prefix(1);
  return true;
}

// K, KB and KiB are all 1024; B and nothing are 1.
bool shift_of(std::string_view suffix, unsigned& out) noexcept {
  out = 0;
  if (suffix.empty() || same(suffix, "B")) return true;
  const auto letter = static_cast<char>(std::toupper(static_cast<unsigned char>(suffix[0])));
  const std::size_t at = size_letters.find(letter);
  suffix.remove_prefix(1);
  if (at == std::string_view::npos || !(suffix.empty() || same(suffix, "B") || same(suffix, "iB"))) return false;
  out = static_cast<unsigned>(10 * (at + 1));
  return true;
}

}  // namespace

bool read(std::string_view text, std::uint64_t& out) noexcept {
  std::uint64_t number = 0;
  unsigned shift = 0;
  if (!take_number(text, number) || !shift_of(text, shift)) return false;
  if (number > std::numeric_limits<std::uint64_t>::max() >> shift) return false;
  out = number << shift;
  return true;
}

bool read(std::string_view text, int& out) noexcept {
  int number = 0;
  if (!take_number(text, number) || !text.empty()) return false;
  out = number;
  return true;
}

bool read(std::string_view text, bool& out) noexcept { return read_name(text, truths, out); }

bool read(std::string_view text, std::chrono::milliseconds& out) noexcept {
  // As many as fit in nanoseconds, with room to add them to a time: about 146 years.
  constexpr std::uint64_t most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() / 2000000);
  std::uint64_t number = 0;
  if (!take_number(text, number)) return false;
  const std::uint64_t factor = same(text, "s") ? 1000 : 1;
  if (!(text.empty() || same(text, "ms") || factor == 1000) || number > most / factor) return false;
  out = std::chrono::milliseconds(static_cast<std::int64_t>(number * factor));
  return true;
}

bool read(std::string_view text, backend& out) noexcept { return read_name(text, backends, out); }
bool read(std::string_view text, log_level& out) noexcept { return read_name(text, levels, out); }

std::string print(std::uint64_t bytes) {
  std::size_t unit = 0;
  for (; unit < size_letters.size() && bytes != 0 && bytes % 1024 == 0; ++unit) bytes /= 1024;
  return std::to_string(bytes) + (unit == 0 ? std::string() : std::string(1, size_letters[unit - 1]));
}

std::string print(int value) { return std::to_string(value); }
std::string print(bool value) { return print_name(value, truths); }
std::string print(std::chrono::milliseconds value) { return std::to_string(value.count()) + "ms"; }
std::string print(backend value) { return print_name(value, backends); }
std::string print(log_level value) { return print_name(value, levels); }

std::string_view allowed(std::uint64_t) { return "a number of bytes, as 4096, 64K, 16M, 2G or 1TiB"; }
std::string_view allowed(int) { return "a whole number"; }
std::string_view allowed(bool) { return "on, off, 1, 0, true, false, yes or no"; }
std::string_view allowed(std::chrono::milliseconds) { return "a time, as 250, 250ms or 2s"; }
std::string_view allowed(backend) { return "auto, cuda or sim"; }
std::string_view allowed(log_level) { return "off, error, warning, info or debug"; }

}  // namespace weir::service_detail
