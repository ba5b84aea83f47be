#pragma once
// JSON with keys in the order in which they are written.

#include <nlohmann/json.hpp>

#include <string>

namespace weir::cli {

using json = nlohmann::ordered_json;

/// To stdout, indented, with a line break at the end.
void print_json(const json& value);

}  // namespace weir::cli
