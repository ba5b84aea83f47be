#include "cli/json.hpp"

#include <fmt/format.h>

namespace weir::cli {

// Names of files and devices may hold any bytes: replace what is not UTF-8 instead of failing.
void print_json(const json& value) {
  fmt::print("{}\n", value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace weir::cli
