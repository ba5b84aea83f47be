// `weir stress`

#include <fmt/format.h>

#include <map>
#include <memory>

#include "cli/commands.hpp"
#include "cli/errors.hpp"
#include "cli/json.hpp"
#include "cli/options.hpp"
#include "cli/sizes.hpp"
#include "cli/stress.hpp"
#include "cli/table.hpp"

namespace weir::cli {
namespace {

struct stress_command {
  common_options common;
  stress_options stress;
  std::string pattern = "mixed";
  std::string streams = "own";
  std::uint64_t memory = 0;  ///< of each simulated device; 0: as configured
  bool own_sizes = false;
};

void finish_options(stress_command& c) {
  const std::map<std::string, stress_pattern> patterns = {
      {"mixed", stress_pattern::mixed}, {"pair", stress_pattern::pair}, {"handoff", stress_pattern::handoff}};
  c.stress.pattern = patterns.at(c.pattern);
  c.stress.shared_streams = c.streams == "shared";
  if (c.stress.smallest == 0) throw usage_error("--min: blocks of 0 bytes are no blocks");
  if (c.stress.smallest > c.stress.largest) throw usage_error("--min is above --max");
  // Who names a largest size means it.
  if (c.own_sizes) c.stress.rare = 0;
}

json to_json(const stress_command& c, const rig& r, const stress_result& result, const fault_list& faults) {
  const auto pairs_per_second = result.seconds > 0 ? static_cast<double>(result.pairs) / result.seconds : 0.0;
  return {{"devices", c.stress.devices},
          {"threads", c.stress.threads},
          {"seconds", result.seconds},
          {"pairs", result.pairs},
          {"pairs_per_second", pairs_per_second},
          {"p50_ns", result.latency.percentile(0.5)},
          {"p99_ns", result.latency.percentile(0.99)},
          {"p999_ns", result.latency.percentile(0.999)},
          {"max_ns", result.latency.max()},
          {"peak_live", result.peak_live},
          {"peak_reserved", result.peak_reserved},
          {"faults", faults.count()},
          {"stamped", result.stamped},
          {"refused", result.refused},
          {"backend", r.simulated() ? "sim" : "cuda"},
          {"pattern", c.pattern},
          {"streams", c.streams},
          {"seed", c.stress.seed}};
}

void print_text(const stress_command& c, const rig& r, const stress_result& result, const fault_list& faults) {
  const auto ns = [&](double fraction) {
    return format_seconds(static_cast<double>(result.latency.percentile(fraction)) * 1e-9);
  };
  fmt::print("{} {} device{}, {} thread{}, {} streams, pattern {}, seed {}\n\n", c.stress.devices,
             r.simulated() ? "simulated" : "CUDA", c.stress.devices == 1 ? "" : "s", c.stress.threads,
             c.stress.threads == 1 ? "" : "s", c.streams, c.pattern, c.stress.seed);
  table rows;
  rows.row({"time", format_seconds(result.seconds)});
  rows.row({"pairs",
            fmt::format("{} ({} with contents checked)", format_count(result.pairs), format_count(result.stamped))});
  rows.row({"pairs per second",
            format_count(static_cast<std::uint64_t>(static_cast<double>(result.pairs) / result.seconds))});
  rows.row({"allocate + free", fmt::format("p50 {}, p99 {}, p99.9 {}, max {}", ns(0.5), ns(0.99), ns(0.999),
                                           format_seconds(static_cast<double>(result.latency.max()) * 1e-9))});
  rows.row({"peak live", format_bytes(result.peak_live)});
  rows.row({"peak reserved", format_bytes(result.peak_reserved)});
  if (result.refused != 0) rows.row({"refused, memory full", format_count(result.refused)});
  rows.row({"faults", format_count(faults.count())});
  fmt::print("{}", rows.text());
}

int run(stress_command& c) {
  finish_options(c);
  rig_options wanted;
  wanted.config = c.common.config();
  wanted.devices = c.stress.devices;
  if (c.memory != 0) wanted.config.simulated_memory = c.memory;
  // The list outlives the service, whose hooks point to it.
  fault_list faults;
  rig r(wanted);
  const stress_result result = run_stress(c.stress, r, faults);
  if (c.common.json) {
    print_json(to_json(c, r, result, faults));
  } else {
    print_text(c, r, result, faults);
  }
  if (faults.any()) throw fault_error(fmt::format("stress: {}", faults.texts().front()));
  return exit_good;
}

}  // namespace

void add_stress(CLI::App& app, action& chosen) {
  const auto c = std::make_shared<stress_command>();
  CLI::App* command = app.add_subcommand("stress", "Allocate and free from many threads and check every block");
  stress_options& o = c->stress;
  command->add_option("--devices", o.devices, "Number of devices")
      ->type_name("N")
      ->capture_default_str()
      ->check(between(1, 64));
  command->add_option("--threads", o.threads, "Number of threads")
      ->type_name("N")
      ->capture_default_str()
      ->check(between(1, 1024));
  command->add_option("--seconds", o.seconds, "How long")
      ->type_name("S")
      ->capture_default_str()
      ->check(between(0.0, 1e6));
  command
      ->add_option("--pattern", c->pattern,
                   "mixed: replace random live blocks; pair: free each at once; handoff: the next thread frees")
      ->type_name("NAME")
      ->capture_default_str()
      ->check(CLI::IsMember({"mixed", "pair", "handoff"}));
  command->add_option("--streams", c->streams, "own: a stream for each thread and device; shared: one for each device")
      ->type_name("NAME")
      ->capture_default_str()
      ->check(CLI::IsMember({"own", "shared"}));
  command->add_option("--seed", o.seed, "Of the random numbers")->type_name("N")->capture_default_str();
  command->add_option("--live", o.live, "Blocks that a thread keeps live (mixed)")
      ->type_name("N")
      ->capture_default_str()
      ->check(between(1, 1 << 20));
  add_bytes(*command, "--min", o.smallest, "Smallest block [256]");
  CLI::Option* largest = add_bytes(*command, "--max", o.largest, "Largest block [4M, and one in 256 up to 64M]");
  add_bytes(*command, "--memory", c->memory, "Memory of each simulated device [4G]");
  command->add_option("--check", o.stamp_every, "Check the contents of one block in N [1; pair: 32]")
      ->type_name("N")
      ->check(between(1U, 1U << 31));
  add_common(*command, c->common);
  command->footer(
      "Overlaps are looked for in all blocks, contents in those of --check.\n"
      "Examples:\n"
      "  weir stress --devices 4 --threads 16 --seconds 30\n"
      "  weir stress --pattern handoff --streams own --backend sim --json");
  command->callback([c, largest, &chosen] {
    c->own_sizes = largest->count() > 0;
    chosen = [c] { return run(*c); };
  });
}

}  // namespace weir::cli
