#include "cli/program.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <string>

#include "weir/error.hpp"
#include "weir/version.hpp"

#include "cli/commands.hpp"
#include "cli/errors.hpp"

namespace weir::cli {
namespace {

int complain(int status, const std::string& text) {
  std::fflush(stdout);
  fmt::print(stderr, "weir: {}\n", one_line(text));
  return status;
}

// What an error of the library means for the caller of the program.
int status_of(const weir::error& e) {
  const bool asked_wrongly = e.code() == errc::invalid_argument || e.code() == errc::not_supported;
  return asked_wrongly ? exit_usage : exit_fault;
}

}  // namespace

int run_program(int argc, const char* const* argv) {
  CLI::App app("Weir: memory for multi-threaded, multi-GPU trainers", "weir");
  app.set_version_flag("--version", fmt::format("weir {}", weir::version()));
  // None is checked for below: CLI11 would complain of a missing command where a wrong one was given.
  app.require_subcommand(0, 1);
  app.footer(
      "Works on the GPUs of the machine, or on simulated ones where there are none.\n"
      "WEIR_... variables configure the library: see `weir info --config`.\n"
      "Exit status: 0 all well, 1 a fault was found, 2 the command or a file was wrong.");
  action chosen;
  add_info(app, chosen);
  add_stress(app, chosen);
  add_replay(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& wanted) {  // --help, --version
    return app.exit(wanted);
  } catch (const CLI::ParseError& e) {
    return complain(exit_usage, e.what());
  }
  if (!chosen) return complain(exit_usage, "a command is required: info, stress or replay (see weir --help)");
  try {
    return chosen();
  } catch (const usage_error& e) {
    return complain(exit_usage, e.what());
  } catch (const weir::error& e) {
    return complain(status_of(e), e.what());
  } catch (const std::exception& e) {
    return complain(exit_fault, e.what());
  }
}

}  // namespace weir::cli
