#include "coordinator/allocate.hpp"

#include <bit>
#include <string>

#include "cache/thread_cache.hpp"
#include "coordinator/captures.hpp"
#include "coordinator/ladder.hpp"
#include "driver/error.hpp"

namespace weir::coordinator {

outcome try_allocate(lane_state* l, std::size_t bytes, std::size_t alignment, out_of_memory_report* report) noexcept {
  outcome out;
  out.why = errc::invalid_argument;
  if (l == nullptr) return out;
  core* c = l->core.load(std::memory_order_acquire);
  if (c == nullptr || c->ending.load(std::memory_order_acquire)) {
    out.why = errc::shut_down;
    return out;
  }
  if (!cache::usable_here()) {
    out.why = errc::not_after_fork;
    return out;
  }
  if (!std::has_single_bit(alignment) || alignment > max_alignment) return out;
  if (bytes == 0) return out;
  device_state& d = *l->device;
  // Sizes that wrap or that the device could never hold change nothing (C9).
  if (bytes > d.memory.capacity()) {
    d.out_of_memory.fetch_add(1, std::memory_order_relaxed);
    out.why = errc::out_of_memory;
    if (report != nullptr) {
      report->asked = bytes;
      report->device = d.memory.ordinal();
      report->capacity = d.memory.capacity();
      report->limit = d.memory.limit.load(std::memory_order_relaxed);
      report->reserved = d.memory.reserved();
    }
    return out;
  }
  if (d.memory.announced_captures.load(std::memory_order_acquire) != 0) l = lane_under_capture(*l);
  if (l == nullptr) {
    out.why = errc::out_of_memory;
    return out;
  }
  return ladder(*l, bytes, alignment).climb(report);
}

void* allocate_or_null(lane_state* l, std::size_t bytes, std::size_t alignment) noexcept {
  return try_allocate(l, bytes, alignment, nullptr).block;
}

void* allocate(lane_state* l, std::size_t bytes, std::size_t alignment) {
  out_of_memory_report report;
  const outcome out = try_allocate(l, bytes, alignment, &report);
  if (out.block != nullptr) return out.block;
  switch (out.why) {
    case errc::out_of_memory:
      throw out_of_memory(report);
    case errc::shut_down:
      throw error(out.why, "allocate: the service of this lane has ended");
    case errc::not_after_fork:
      throw error(out.why, "allocate: not usable after fork: the devices belong to the parent process");
    case errc::driver_error: {
      const device_state& d = *l->device;
      throw error(out.why, "allocate: device " + std::to_string(d.memory.ordinal()) +
                               " cannot grow: " + driver::describe(*d.owner.functions, "the driver", out.driver));
    }
    case errc::invalid_argument:
    case errc::not_supported:
      break;
  }
  if (l == nullptr) throw error(errc::invalid_argument, "allocate: an empty lane");
  if (!std::has_single_bit(alignment) || alignment > max_alignment) {
    throw error(errc::invalid_argument, "allocate: alignment " + std::to_string(alignment) +
                                            " is not a power of two up to " + std::to_string(max_alignment));
  }
  return nullptr;  // zero bytes
}

}  // namespace weir::coordinator
