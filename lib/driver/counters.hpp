#pragma once
// How often the driver was called, and for how long, by kind. One set per device.

#include <array>
#include <atomic>
#include <cstdint>

#include "driver/table.hpp"

namespace weir::driver {

/// Counts of one device's driver calls. Any thread adds and reads at any time; a reader sees each number whole, not all
/// numbers of one instant.
class call_counters {
 public:
  struct entry {
    std::uint64_t count = 0;
    std::uint64_t nanoseconds = 0;  // zero for calls that are only counted
  };
  using totals = std::array<entry, call_count>;

  void add(call c, std::uint64_t nanoseconds) noexcept {
    cell& at = cells_[static_cast<std::size_t>(c)];
    at.count.fetch_add(1, std::memory_order_relaxed);
    if (nanoseconds != 0) at.nanoseconds.fetch_add(nanoseconds, std::memory_order_relaxed);
  }

  [[nodiscard]] entry of(call c) const noexcept {
    const cell& at = cells_[static_cast<std::size_t>(c)];
    return {at.count.load(std::memory_order_relaxed), at.nanoseconds.load(std::memory_order_relaxed)};
  }

  [[nodiscard]] totals snapshot() const noexcept {
    totals all;
    for (std::size_t i = 0; i < call_count; ++i) all[i] = of(static_cast<call>(i));
    return all;
  }

 private:
  struct cell {
    std::atomic<std::uint64_t> count{0};
    std::atomic<std::uint64_t> nanoseconds{0};
  };
  std::array<cell, call_count> cells_;
};

}  // namespace weir::driver
