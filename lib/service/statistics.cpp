#include "weir/statistics.hpp"

namespace weir {

device_statistics statistics::total() const {
  // Every number but the device's own.
  static constexpr std::uint64_t device_statistics::*numbers[] = {
      &device_statistics::asked,         &device_statistics::live,          &device_statistics::live_peak,
      &device_statistics::cached,        &device_statistics::pending,       &device_statistics::stranded,
      &device_statistics::free_pages,    &device_statistics::slack,         &device_statistics::retiring,
      &device_statistics::reserved,      &device_statistics::reserved_peak, &device_statistics::addresses,
      &device_statistics::metadata,      &device_statistics::allocations,   &device_statistics::frees,
      &device_statistics::out_of_memory, &device_statistics::growths,       &device_statistics::lanes,
  };
  static_assert(sizeof(device_statistics) == (std::size(numbers) + 1) * sizeof(std::uint64_t));
  device_statistics sum;
  sum.device = -1;
  for (const device_statistics& d : devices) {
    for (const auto number : numbers) sum.*number += d.*number;
  }
  return sum;
}

std::uint64_t statistics::total_driver_calls() const {
  std::uint64_t sum = 0;
  for (const driver_call_count& c : driver_calls) sum += c.calls;
  return sum;
}

double statistics::driver_seconds() const {
  double sum = 0;
  for (const driver_call_count& c : driver_calls) sum += c.seconds;
  return sum;
}

}  // namespace weir
