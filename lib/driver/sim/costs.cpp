#include "driver/sim/costs.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace weir::sim {
namespace {

constexpr double mib = 1024.0 * 1024.0;
constexpr double gib = 1024.0 * mib;

// One handle of that many MiB: create, map, set access, unmap, release, in microseconds.
struct handle_row {
  double size;
  std::array<double, 5> cost;
};
constexpr std::array handle_table{
    handle_row{2, {9.4, 1.4, 29.8, 17.5, 11.7}}, handle_row{8, {9.5, 0.7, 26, 23, 18}},
    handle_row{16, {13, 0.8, 31, 26, 26}},       handle_row{32, {20, 1.1, 40, 27, 34}},
    handle_row{64, {22, 2.3, 42, 29, 51}},       handle_row{256, {25, 4.6, 57, 34, 186}},
    handle_row{1024, {34, 4, 108, 52, 658}},
};

std::uint64_t nanoseconds(double ns) { return static_cast<std::uint64_t>(std::max(0.0, ns)); }

}  // namespace

std::uint64_t default_cost(driver::call c) noexcept {
  using driver::call;
  switch (c) {
    case call::k_cuMemAddressReserve:
      return 1'600;
    case call::k_cuMemAlloc:
      return 18'300;
    case call::k_cuMemFree:
      return 16'500;
    case call::k_cuMemAllocAsync:
      return 310;
    case call::k_cuMemFreeAsync:
      return 305;
    case call::k_cuCtxEnablePeerAccess:
      return 11'400'000;
    case call::k_cuEventRecord:
      return 204;
    case call::k_cuEventQuery:
      return 202;
    case call::k_cuStreamWaitEvent:
      return 171;
    case call::k_cuStreamQuery:
      return 235;
    case call::k_cuStreamIsCapturing:
      return 46;
    case call::k_cuStreamGetId:
      return 48;
    case call::k_cuStreamGetCaptureInfo:
      return 31;
    case call::k_cuCtxGetDevice:
      return 30;
    case call::k_cuCtxPushCurrent:
      return 26;
    case call::k_cuCtxPopCurrent:
      return 25;
    case call::k_cuCtxRecordEvent:
      return 244;
    case call::k_cuEventCreate:
      return 70;
    case call::k_cuEventDestroy:
      return 71;
    case call::k_cuThreadExchangeStreamCaptureMode:
      return 7;
    case call::k_cuStreamWriteValue64:
      return 2'500;
    default:
      return 0;
  }
}

std::uint64_t handle_cost(handle_step step, std::uint64_t bytes) noexcept {
  const auto column = static_cast<std::size_t>(step);
  const double size = static_cast<double>(bytes) / mib;
  // Between two measured sizes the cost goes with the size; below the first it is the first, above the last it scales.
  if (size <= handle_table.front().size) return nanoseconds(handle_table.front().cost[column] * 1e3);
  for (std::size_t i = 1; i < handle_table.size(); ++i) {
    const handle_row& low = handle_table[i - 1];
    const handle_row& high = handle_table[i];
    if (size > high.size) continue;
    const double share = (size - low.size) / (high.size - low.size);
    return nanoseconds((low.cost[column] + share * (high.cost[column] - low.cost[column])) * 1e3);
  }
  const handle_row& last = handle_table.back();
  return nanoseconds(last.cost[column] * 1e3 * size / last.size);
}

std::uint64_t host_handle_cost(handle_step step, std::uint64_t bytes) noexcept {
  const double size = static_cast<double>(bytes) / gib;
  switch (step) {
    case handle_step::create:
      return nanoseconds(size * 326e6);  // 1,304 ms for 4 GiB
    case handle_step::unmap:
      return handle_cost(step, bytes);
    case handle_step::release:
      return nanoseconds(size * 52e6);  // 208 ms for 4 GiB, unmap included
    default:
      return handle_cost(step, bytes);
  }
}

std::uint64_t host_allocation_cost(std::uint64_t bytes) noexcept {
  return nanoseconds(static_cast<double>(bytes) / gib * 442e6);  // 1,768 ms for 4 GiB
}

std::uint64_t host_registration_cost(std::uint64_t bytes) noexcept {
  return nanoseconds(static_cast<double>(bytes) / gib * 24.25e6);  // 97 ms for 4 GiB
}

}  // namespace weir::sim
