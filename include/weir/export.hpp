/// \file
/// WEIR_API marks what the shared library shows; all else is hidden.
#pragma once

#if defined(__GNUC__) || defined(__clang__)
#define WEIR_API __attribute__((visibility("default")))
#else
#define WEIR_API
#endif
