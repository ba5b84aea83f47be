#pragma once
// Options that every command takes, and option types that CLI11 does not know.

#include <CLI/CLI.hpp>

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

/// An option that takes a size with a suffix ("64K", "1.5GiB").
CLI::Option* add_bytes(CLI::App& command, const std::string& name, std::uint64_t& into, const std::string& text);

}  // namespace weir::cli
