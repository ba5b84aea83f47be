#include "weir/version.hpp"

#define WEIR_TEXT_(x) #x
#define WEIR_TEXT(x) WEIR_TEXT_(x)

namespace weir {

int version_number() noexcept { return WEIR_VERSION; }

const char* version_string() noexcept {
  return WEIR_TEXT(WEIR_VERSION_MAJOR) "." WEIR_TEXT(WEIR_VERSION_MINOR) "." WEIR_TEXT(WEIR_VERSION_PATCH);
}

}  // namespace weir
