#include "weir/version.hpp"

// Two steps, so that the numbers are put in before they become text.
#define WEIR_TEXT_(x) #x
#define WEIR_TEXT(x) WEIR_TEXT_(x)

namespace weir {

const char* version() noexcept {
  return WEIR_TEXT(WEIR_VERSION_MAJOR) "." WEIR_TEXT(WEIR_VERSION_MINOR) "." WEIR_TEXT(WEIR_VERSION_PATCH);
}

}  // namespace weir
