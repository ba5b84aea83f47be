#pragma once
// How often each driver call was made, which ones are to fail, and what they cost.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "driver/table.hpp"

namespace weir::sim {

/// Counts of all calls, spread so that threads do not share cache lines.
class call_ledger {
 public:
  struct entry {
    std::uint64_t count = 0;
    std::uint64_t failed = 0;
    std::uint64_t cost = 0;  // ns
  };

  void add(driver::call c, std::uint64_t thread, bool failed) noexcept;
  void add_cost(driver::call c, std::uint64_t thread, std::uint64_t nanoseconds) noexcept;
  [[nodiscard]] entry of(driver::call c) const noexcept;
  void clear() noexcept;

 private:
  struct cell {
    std::atomic<std::uint64_t> count{0};
    std::atomic<std::uint64_t> failed{0};
    std::atomic<std::uint64_t> cost{0};
  };
  struct alignas(64) shard {
    std::array<cell, driver::call_count> cells;
  };
  static constexpr std::size_t shard_count = 16;
  std::array<shard, shard_count> shards_;
};

/// Orders to fail.
class failure_plan {
 public:
  void add(driver::call c, std::uint64_t k, CUresult with, std::uint64_t count, int device);
  void clear();

  /// Whether any order is left: one load, for the way in of every call.
  [[nodiscard]] bool armed() const noexcept { return armed_.load(std::memory_order_acquire); }
  /// Counts this call against the orders. The result it must give, or CUDA_SUCCESS.
  CUresult check(driver::call c, int device);

 private:
  struct order {
    driver::call call{};
    std::uint64_t before = 0;  // calls that still pass
    std::uint64_t left = 0;    // calls that fail after those
    CUresult with = CUDA_SUCCESS;
    int device = -1;
  };
  std::mutex mutex_;
  std::vector<order> orders_;
  std::atomic<bool> armed_{false};
};

/// What calls cost.
class cost_plan {
 public:
  void use_defaults(double sleep_scale);
  void set(driver::call c, std::chrono::nanoseconds cost, int device);

  [[nodiscard]] bool active() const noexcept { return active_.load(std::memory_order_acquire); }

  struct price {
    std::uint64_t nanoseconds = 0;  // to count
    std::uint64_t sleep = 0;        // to take
  };
  /// `hint`: what the call itself computed from its sizes; 0: nothing.
  [[nodiscard]] price of(driver::call c, int device, std::uint64_t hint) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<driver::call, int>, std::uint64_t> fixed_;
  bool defaults_ = false;
  double sleep_scale_ = 0.0;
  std::atomic<bool> active_{false};
};

}  // namespace weir::sim
