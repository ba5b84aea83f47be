// `weir replay`

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <optional>

#include "cli/commands.hpp"
#include "cli/errors.hpp"
#include "cli/json.hpp"
#include "cli/options.hpp"
#include "cli/replay.hpp"
#include "cli/table.hpp"

namespace weir::cli {
namespace {

struct replay_command {
  common_options common;
  replay_options replay;
  std::vector<std::string> traces;
  std::uint64_t chunk_size = 0;
  double scale = 1;
};

json to_json(const replay_run& r, double ns_per_event, std::size_t faults) {
  json calls = json::object();
  for (const auto& [name, count] : r.driver_calls) calls[name] = count;
  return {{"events", r.events},
          {"peak_requested", r.peak_requested},
          {"peak_reserved", r.peak_reserved},
          {"ratio", r.ratio()},
          {"ns_per_event", ns_per_event},
          {"driver_calls", calls},
          {"driver_seconds", r.driver_seconds},
          {"metadata_bytes", r.metadata_bytes},
          {"addresses", r.addresses},
          {"faults", faults}};
}

json to_json(const replay_result& result) {
  json out = {{"trace", result.trace}};
  out.update(to_json(result.total(), result.ns_per_event(), result.faults.size()));
  json runs = json::array();
  for (const replay_run& r : result.runs) {
    json one = {{"trace", result.trace}};
    one.update(to_json(r, r.ns_per_event(), 0));
    runs.push_back(one);
  }
  out["runs"] = runs;
  out["backend"] = result.simulated ? "sim" : "cuda";
  return out;
}

std::string calls_text(const replay_run& r) {
  std::string out;
  for (const auto& [name, count] : r.driver_calls) {
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name, format_count(count));
  }
  return out.empty() ? "none" : out;
}

std::string short_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

void add_row(table& rows, const std::string& name, const replay_run& r) {
  std::uint64_t calls = 0;
  for (const auto& [kind, count] : r.driver_calls) calls += count;
  rows.row({name, format_count(r.events), format_bytes(r.peak_requested), format_bytes(r.peak_reserved),
            fmt::format("{:.4f}", r.ratio()), fmt::format("{:.1f}", r.ns_per_event()), format_count(calls),
            format_seconds(r.driver_seconds), format_bytes(r.metadata_bytes)});
}

void print_text(const std::vector<replay_result>& results) {
  table rows({1, 2, 3, 4, 5, 6, 7, 8});
  rows.row(
      {"trace", "events", "requested", "reserved", "ratio", "ns/event", "driver calls", "driver time", "metadata"});
  for (const replay_result& result : results) {
    for (std::size_t i = 0; i < result.runs.size(); ++i) {
      add_row(rows, i == 0 ? short_name(result.trace) : fmt::format("  run {}", i + 1), result.runs[i]);
    }
  }
  fmt::print("{}\ndriver calls, all runs{}\n", rows.text(),
             !results.empty() && results.front().simulated ? " (simulated; their time is what a GPU would take)" : "");
  table calls;
  for (const replay_result& result : results) calls.row({short_name(result.trace), calls_text(result.total())});
  fmt::print("{}", calls.text());
}

int run(replay_command& c) {
  c.replay.config = c.common.config();
  if (c.chunk_size != 0) c.replay.config.chunk_size = c.chunk_size;
  c.replay.config.check();
  // All are read before the first is replayed: a damaged one is found at once.
  std::vector<trace> traces;
  for (const std::string& path : c.traces) {
    traces.push_back(read_trace(path));
    if (c.scale != 1) scale_trace(traces.back(), c.scale);
  }
  std::vector<replay_result> results;
  std::string fault;
  for (const trace& t : traces) {
    results.push_back(replay(t, c.replay));
    const replay_result& r = results.back();
    if (fault.empty() && !r.faults.empty()) fault = r.faults.front();
  }
  if (c.common.json) {
    json all = json::array();
    for (const replay_result& r : results) all.push_back(to_json(r));
    print_json(all);
  } else {
    print_text(results);
  }
  if (!fault.empty()) throw fault_error(fmt::format("replay: {}", fault));
  return exit_good;
}

CLI::Option* add_limit(CLI::App& command, limit_value& into) {
  const auto take = [&into](const CLI::results_t& given) {
    const std::optional<limit_value> limit = parse_limit(given.front());
    if (!limit) throw CLI::ValidationError("--limit", "'" + given.front() + "' is neither a size nor like 1.03x");
    into = *limit;
    return true;
  };
  return command.add_option("--limit", take, "Most memory to reserve: a size, or 1.03x for times the requested peak")
      ->type_name("SIZE");
}

}  // namespace

void add_replay(CLI::App& app, action& chosen) {
  const auto c = std::make_shared<replay_command>();
  CLI::App* command = app.add_subcommand("replay", "Replay recorded allocations and measure the cost");
  command
      ->add_option("trace", c->traces,
                   "CSV files, gzipped or not: op,id,bytes,stream, or RMM's log Thread,Time,Action,Pointer,Size,Stream")
      ->required()
      ->type_name("");
  command->add_option("--repeat", c->replay.repeat, "Replays in one service")
      ->type_name("N")
      ->capture_default_str()
      ->check(between(1, 1000000));
  command->add_option("--copies", c->replay.copies, "Copies in lock-step, each on streams of its own")
      ->type_name("N")
      ->capture_default_str()
      ->check(between(1, 1024));
  command->add_option("--scale", c->scale, "Multiply the sizes above 64 KiB")
      ->type_name("F")
      ->capture_default_str()
      ->check(between(0.01, 100.0));
  add_limit(*command, c->replay.limit);
  add_bytes(*command, "--chunk-size", c->chunk_size, "Size of the driver's handles [chosen]");
  command->add_flag("--touch", c->replay.touch, "Write and verify every block, and look for overlaps");
  command->add_flag("--sim-delay", c->replay.sim_delay, "Calls of the simulated driver take as long as on a GPU");
  add_common(*command, c->common);
  command->footer(
      "No memory is touched without --touch: a trace of 24 GB replays on a small machine.\n"
      "Examples:\n"
      "  weir replay tests/traces/*.csv.gz\n"
      "  weir replay --repeat 3 --limit 1.03x --json tests/traces/gnn.csv.gz");
  command->callback([c, &chosen] {
    // JSON is for programs: no bar beside it.
    c->replay.progress = !c->common.json;
    chosen = [c] { return run(*c); };
  });
}

}  // namespace weir::cli
