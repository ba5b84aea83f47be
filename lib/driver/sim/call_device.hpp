#pragma once
// Which device a call concerns: for orders to fail and for costs. Only asked when there are any.

#include <tuple>
#include <type_traits>

#include "driver/sim/machine_state.hpp"

namespace weir::sim {

inline int device_of_memory(machine_state& m, std::uint64_t at) {
  const std::shared_ptr<reservation> range = m.addresses.find(at);
  if (range == nullptr) return -1;
  const std::lock_guard lock(range->mutex);
  const auto covering = range->cover(at, 1);
  return covering.empty() ? -1 : covering.front()->memory->home->owner();
}

inline int device_of_handle(machine_state& m, std::uint64_t handle) {
  const unsigned owner = handle_table::owner_of(handle);
  return owner < m.devices.size() ? static_cast<int>(owner) : -1;
}

template <driver::call Kind, class... Args>
int device_of_call(machine_state& m, Args... args) {
  using driver::call;
  [[maybe_unused]] const std::tuple<Args...> given(args...);
  int found = -1;
  if constexpr (Kind == call::k_cuMemCreate) {
    const CUmemAllocationProp* prop = std::get<2>(given);
    if (prop != nullptr && prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE) found = prop->location.id;
  } else if constexpr (Kind == call::k_cuMemMap) {
    found = device_of_handle(m, std::get<3>(given));
  } else if constexpr (Kind == call::k_cuMemRelease) {
    found = device_of_handle(m, std::get<0>(given));
  } else if constexpr (Kind == call::k_cuMemUnmap || Kind == call::k_cuMemSetAccess || Kind == call::k_cuMemFree) {
    found = device_of_memory(m, std::get<0>(given));
  } else if constexpr (Kind == call::k_cuDevicePrimaryCtxRetain) {
    found = std::get<1>(given);
  } else if constexpr (Kind == call::k_cuDevicePrimaryCtxRelease || Kind == call::k_cuDevicePrimaryCtxGetState) {
    found = std::get<0>(given);
  } else {
    // Calls on a stream concern the stream's device.
    auto look = [&](auto arg) {
      if constexpr (std::is_same_v<decltype(arg), CUstream>) {
        if (const stream_slot* s = m.streams.find(arg)) found = s->device.load(std::memory_order_relaxed);
      }
    };
    (look(args), ...);
  }
  return found >= 0 ? found : m.current_device();
}

}  // namespace weir::sim
