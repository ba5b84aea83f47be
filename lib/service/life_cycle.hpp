#pragma once
// How a service begins and ends.

#include <memory>

#include "coordinator/core.hpp"

namespace weir::service_detail {

/// Chooses the driver, finds the devices. Throws weir::error.
void begin(coordinator::core& c, std::shared_ptr<sim::machine> machine);

/// Ends all lanes and gives everything back. REQUIRES: no thread is in a call of the service.
void end(coordinator::core& c) noexcept;

}  // namespace weir::service_detail
