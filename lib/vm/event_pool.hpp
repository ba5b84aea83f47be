#pragma once
// Events of one device, kept for use again: making one costs 140 ns, and a warm pool makes no driver call.

#include <array>
#include <atomic>
#include <cstdint>

#include "driver/api.hpp"

namespace weir::vm {

/// Lock-free. All members but `alive` need the device's context current.
class event_pool {
 public:
  static constexpr std::uint32_t most_kept = 128;

  explicit event_pool(const driver::api& driver) noexcept : driver_(&driver) {}
  event_pool(const event_pool&) = delete;
  event_pool& operator=(const event_pool&) = delete;

  /// An event without timing. On failure `out` is null.
  CUresult take(CUevent& out) noexcept;
  /// Takes an event back, whether it was reached or not: recording it again makes it new.
  void give(CUevent event) noexcept;
  /// Destroys what is kept.
  void clear() noexcept;

  /// Events made and not destroyed, kept or out.
  [[nodiscard]] std::uint64_t alive() const noexcept { return alive_.load(std::memory_order_relaxed); }

 private:
  void destroy(CUevent event) noexcept;

  const driver::api* driver_;
  std::atomic<std::uint64_t> alive_{0};
  std::atomic<std::uint32_t> kept_{0};
  std::array<std::atomic<CUevent>, most_kept> shelf_{};
};

}  // namespace weir::vm
