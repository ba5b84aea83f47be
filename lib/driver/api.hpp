#pragma once
// The counted driver: a table and a set of counters behind methods named like the driver's functions, so that callers
// write `driver.cuMemMap(...)` and need not think of counting.

#include <chrono>
#include <utility>

#include "driver/counters.hpp"
#include "driver/table.hpp"

namespace weir::driver {

/// Calls through `functions()` and adds each call to `counters()`. Copies share both. An optional call that the driver
/// lacks gives CUDA_ERROR_NOT_SUPPORTED. As thread safe as the driver; costs one relaxed add, and two clock reads on
/// the calls that take microseconds.
class api {
 public:
  api(const table& functions, call_counters& counters) noexcept : functions_(&functions), counters_(&counters) {}

  [[nodiscard]] const table& functions() const noexcept { return *functions_; }
  [[nodiscard]] call_counters& counters() const noexcept { return *counters_; }

#define WEIR_DRIVER_METHOD(name, version, presence, timing)                       \
  template <class... Args>                                                        \
  CUresult name(Args&&... args) const {                                           \
    return invoke<call::k_##name>(functions_->name, std::forward<Args>(args)...); \
  }
  WEIR_DRIVER_CALLS(WEIR_DRIVER_METHOD)
#undef WEIR_DRIVER_METHOD

 private:
  template <call Kind, class F, class... Args>
  CUresult invoke(F function, Args&&... args) const {
    if constexpr (info(Kind).needed == presence::optional) {
      if (function == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    }
    if constexpr (info(Kind).clock == timing::counted) {
      counters_->add(Kind, 0);
      return function(std::forward<Args>(args)...);
    } else {
      using clock = std::chrono::steady_clock;
      const clock::time_point start = clock::now();
      const CUresult result = function(std::forward<Args>(args)...);
      const auto spent = std::chrono::duration_cast<std::chrono::nanoseconds>(clock::now() - start).count();
      counters_->add(Kind, static_cast<std::uint64_t>(spent));
      return result;
    }
  }

  const table* functions_;
  call_counters* counters_;
};

}  // namespace weir::driver
