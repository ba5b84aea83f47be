#pragma once

#include "weir/export.hpp"

#define WEIR_VERSION_MAJOR 0
#define WEIR_VERSION_MINOR 1
#define WEIR_VERSION_PATCH 0

namespace weir {

/// "0.1.0": of the library that is linked, which may be newer than the header.
WEIR_API const char* version() noexcept;

}  // namespace weir
