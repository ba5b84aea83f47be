#pragma once

#include "weir/service.hpp"

#include "coordinator/core.hpp"

namespace weir {

struct service::implementation {
  explicit implementation(const config& c) : core(c) {}
  coordinator::core core;

  /// The device, or an error that names the call and the number.
  coordinator::device_state& device(int index, const char* call);
};

}  // namespace weir
