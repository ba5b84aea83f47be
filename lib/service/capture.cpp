#include "weir/capture.hpp"

#include <string>

#include "weir/service.hpp"

#include "coordinator/captures.hpp"
#include "service/access.hpp"

namespace weir {

capture::capture(service& s, int device, const weir::pool& p)
    : service_(s), device_(device), pool_(service_detail::access::state(p) != nullptr ? p : s.make_pool("capture")) {
  coordinator::core& c = service_detail::access::core(s);
  if (device < 0 || device >= s.device_count()) {
    throw error(errc::invalid_argument, "capture: no device " + std::to_string(device));
  }
  coordinator::announce_capture(c, *c.devices[static_cast<std::size_t>(device)], this,
                                service_detail::access::state(pool_));
}

void capture::end() noexcept {
  if (!open_) return;
  open_ = false;
  coordinator::core& c = service_detail::access::core(service_);
  coordinator::close_capture(c, *c.devices[static_cast<std::size_t>(device_)], this);
}

capture::~capture() { end(); }

}  // namespace weir
