#include "cli/options.hpp"

#include <optional>

#include "cli/sizes.hpp"

namespace weir::cli {

weir::config common_options::config() const {
  weir::config c = weir::config::from_environment();
  if (!backend.empty()) c.set("driver", backend);
  return c;
}

void add_common(CLI::App& command, common_options& into) {
  command.add_flag("--json", into.json, "Print JSON");
  command.add_option("--backend", into.backend, "Devices: cuda, sim (simulated), or auto: cuda where there is a GPU")
      ->type_name("NAME")
      ->check(CLI::IsMember({"cuda", "sim", "auto"}));
}

CLI::Option* add_bytes(CLI::App& command, const std::string& name, std::uint64_t& into, const std::string& text) {
  const auto take = [name, &into](const CLI::results_t& given) {
    const std::optional<std::uint64_t> bytes = parse_bytes(given.front());
    if (!bytes) throw CLI::ValidationError(name, "'" + given.front() + "' is not a size (like 4096, 64K, 1.5G)");
    into = *bytes;
    return true;
  };
  return command.add_option(name, take, text)->type_name("SIZE");
}

}  // namespace weir::cli
