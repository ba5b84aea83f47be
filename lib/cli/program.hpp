#pragma once

namespace weir::cli {

/// The whole program: reads the command line, runs the command, prints to stdout, one line to stderr if it fails.
/// Returns the exit status (errors.hpp).
int run_program(int argc, const char* const* argv);

}  // namespace weir::cli
