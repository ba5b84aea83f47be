#pragma once
// Options that every command takes, and option types that CLI11 does not know.

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "weir/config.hpp"

namespace weir::cli {

struct common_options {
  bool json = false;
  std::string backend;  ///< "" : as the environment says

  /// The environment's configuration with the command line's backend. Throws `weir::error` for a bad variable.
  [[nodiscard]] weir::config config() const;
};

void add_common(CLI::App& command, common_options& into);

/// Accepts numbers from `low` to `high`, both included.
template <class T>
CLI::Validator between(T low, T high) {
  const auto fault = [low, high](const std::string& text) {
    T value{};
    // Written so that "nan" is refused too.
    const bool good = CLI::detail::lexical_cast(text, value) && value >= low && value <= high;
    return good ? std::string() : fmt::format("'{}' is not a number from {} to {}", text, low, high);
  };
  return CLI::Validator([fault](std::string& text) { return fault(text); }, "");
}

/// An option that takes a size with a suffix ("64K", "1.5GiB").
CLI::Option* add_bytes(CLI::App& command, const std::string& name, std::uint64_t& into, const std::string& text);

}  // namespace weir::cli
