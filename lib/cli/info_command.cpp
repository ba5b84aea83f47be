// `weir info`

#include <fmt/format.h>

#include <memory>

#include "weir/version.hpp"

#include "cli/commands.hpp"
#include "cli/errors.hpp"
#include "cli/json.hpp"
#include "cli/options.hpp"
#include "cli/rig.hpp"
#include "cli/sizes.hpp"
#include "cli/table.hpp"

namespace weir::cli {
namespace {

struct info_options {
  common_options common;
  bool config = false;
};

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

int print_config(const info_options& options) {
  const weir::config c = options.common.config();
  c.check();
  if (options.common.json) {
    json rows = json::array();
    for (const weir::config::option& o : c.options()) {
      rows.push_back({{"name", o.name}, {"variable", o.variable}, {"value", o.value}, {"description", o.description}});
    }
    print_json({{"config", rows}});
    return exit_good;
  }
  table rows;
  rows.row({"option", "value", "variable", "meaning"});
  for (const weir::config::option& o : c.options()) rows.row({o.name, o.value, o.variable, o.description});
  fmt::print("{}", rows.text());
  return exit_good;
}

// The driver tells free memory only to a context, and the service makes none for the question.
device_info look_at(rig& r, int device) {
  device_info d = r.service().info(device);
  std::size_t free = 0;
  std::size_t total = 0;
  r.use(device);
  r.must(r.driver().cuMemGetInfo(&free, &total), "cuMemGetInfo", device);
  d.memory_free = free;
  return d;
}

json to_json(const device_info& d) {
  return {{"index", d.index},
          {"name", d.name},
          {"uuid", d.uuid},
          {"memory", d.memory},
          {"memory_free", d.memory_free},
          {"pci_address", d.pci_address},
          {"numa_node", d.numa_node},
          {"compute_capability", fmt::format("{}.{}", d.compute_major, d.compute_minor)},
          {"granularity", d.granularity},
          {"vmm", d.vmm},
          {"simulated", d.simulated}};
}

std::vector<std::string> row_of(const device_info& d) {
  const std::string pci = d.pci_address.empty() ? "-" : d.pci_address;
  const std::string numa = d.numa_node < 0 ? "-" : std::to_string(d.numa_node);
  return {std::to_string(d.index),
          d.name,
          format_bytes(d.memory),
          format_bytes(d.memory_free),
          pci,
          numa,
          fmt::format("{}.{}", d.compute_major, d.compute_minor),
          d.vmm ? "yes" : "no",
          d.uuid};
}

int print_info(const info_options& options) {
  rig_options wanted;
  wanted.config = options.common.config();
  rig r(wanted);
  const std::string driver = version_text(r.driver_version());
  if (options.common.json) {
    json devices = json::array();
    for (int d = 0; d < r.devices(); ++d) devices.push_back(to_json(look_at(r, d)));
    print_json({{"weir", weir::version()},
                {"driver", driver},
                {"backend", r.simulated() ? "sim" : "cuda"},
                {"simulated", r.simulated()},
                {"reason", r.reason()},
                {"devices", devices}});
    return exit_good;
  }
  fmt::print("weir {}, driver for CUDA {}{}\n", weir::version(), driver, r.simulated() ? " (simulated)" : "");
  if (!r.reason().empty()) fmt::print("devices are simulated: {}\n", r.reason());
  table rows({0, 2, 3, 5, 6});
  rows.row({"device", "name", "memory", "free", "PCI", "NUMA", "compute", "VMM", "UUID"});
  for (int d = 0; d < r.devices(); ++d) rows.row(row_of(look_at(r, d)));
  fmt::print("\n{}", rows.text());
  return exit_good;
}

}  // namespace

void add_info(CLI::App& app, action& chosen) {
  const auto options = std::make_shared<info_options>();
  CLI::App* command = app.add_subcommand("info", "Show devices, versions and configuration");
  add_common(*command, options->common);
  command->add_flag("--config", options->config, "Show every option of the library with its effective value instead");
  command->footer("Examples:\n  weir info\n  WEIR_THREAD_CACHE=64M weir info --config");
  command->callback([options, &chosen] {
    chosen = [options] { return options->config ? print_config(*options) : print_info(*options); };
  });
}

}  // namespace weir::cli
