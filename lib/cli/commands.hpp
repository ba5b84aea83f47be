#pragma once
// The commands of the program. Each adds itself to the command line and, when it was chosen, runs and gives the exit
// status. All of them throw `usage_error` and `weir::error` for what the user got wrong, `fault_error` for faults.

#include <CLI/CLI.hpp>

#include <functional>

namespace weir::cli {

using action = std::function<int()>;

/// Sets `chosen` when the command is given.
void add_info(CLI::App& app, action& chosen);
void add_stress(CLI::App& app, action& chosen);
void add_replay(CLI::App& app, action& chosen);

}  // namespace weir::cli
