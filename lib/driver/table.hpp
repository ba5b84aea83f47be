#pragma once
// The driver as a struct of function pointers with the driver's own names and types. There is no global instance: who
// calls the driver holds a reference to the table it was given, real or simulated.

#include <array>
#include <cstddef>
#include <string_view>

#include "driver/calls.hpp"

namespace weir::driver {

/// One function pointer per entry of WEIR_DRIVER_CALLS. Entries listed as `optional` may be null.
struct table {
#define WEIR_DRIVER_FIELD(name, version, presence, timing) PFN_##name##_v##version name = nullptr;
  WEIR_DRIVER_CALLS(WEIR_DRIVER_FIELD)
#undef WEIR_DRIVER_FIELD
};

/// A driver call by its place in the list: the index of counters and injected failures. Spelled call::k_cuMemMap.
enum class call : unsigned char {
#define WEIR_DRIVER_KIND(name, version, presence, timing) k_##name,
  WEIR_DRIVER_CALLS(WEIR_DRIVER_KIND)
#undef WEIR_DRIVER_KIND
};

enum class presence : unsigned char { required, optional };
enum class timing : unsigned char { timed, counted };

/// What the list says about one call.
struct call_info {
  std::string_view name;
  int version = 0;  // CUDA version of the signature, as cuGetProcAddress takes it
  presence needed = presence::required;
  timing clock = timing::timed;
};

inline constexpr std::array call_list{
#define WEIR_DRIVER_INFO(name, version, need, clock) call_info{#name, version, presence::need, timing::clock},
    WEIR_DRIVER_CALLS(WEIR_DRIVER_INFO)
#undef WEIR_DRIVER_INFO
};

inline constexpr std::size_t call_count = call_list.size();

constexpr const call_info& info(call c) { return call_list[static_cast<std::size_t>(c)]; }

/// The call of that name, or `call_count` if Weir does not use it.
constexpr std::size_t find_call(std::string_view name) {
  for (std::size_t i = 0; i < call_count; ++i) {
    if (call_list[i].name == name) return i;
  }
  return call_count;
}

}  // namespace weir::driver
