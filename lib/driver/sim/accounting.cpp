#include "driver/sim/accounting.hpp"

#include <algorithm>

#include "driver/sim/costs.hpp"

namespace weir::sim {

void call_ledger::add(driver::call c, std::uint64_t thread, bool failed) noexcept {
  cell& at = shards_[thread % shard_count].cells[static_cast<std::size_t>(c)];
  at.count.fetch_add(1, std::memory_order_relaxed);
  if (failed) at.failed.fetch_add(1, std::memory_order_relaxed);
}

void call_ledger::add_cost(driver::call c, std::uint64_t thread, std::uint64_t nanoseconds) noexcept {
  shards_[thread % shard_count].cells[static_cast<std::size_t>(c)].cost.fetch_add(nanoseconds,
                                                                                  std::memory_order_relaxed);
}

call_ledger::entry call_ledger::of(driver::call c) const noexcept {
  entry sum;
  for (const shard& s : shards_) {
    const cell& at = s.cells[static_cast<std::size_t>(c)];
    sum.count += at.count.load(std::memory_order_relaxed);
    sum.failed += at.failed.load(std::memory_order_relaxed);
    sum.cost += at.cost.load(std::memory_order_relaxed);
  }
  return sum;
}

void call_ledger::clear() noexcept {
  for (shard& s : shards_) {
    for (cell& at : s.cells) {
      at.count.store(0, std::memory_order_relaxed);
      at.failed.store(0, std::memory_order_relaxed);
      at.cost.store(0, std::memory_order_relaxed);
    }
  }
}

void failure_plan::add(driver::call c, std::uint64_t k, CUresult with, std::uint64_t count, int device) {
  if (k == 0 || count == 0) return;
  const std::lock_guard lock(mutex_);
  orders_.push_back({c, k - 1, count, with, device});
  armed_.store(true, std::memory_order_release);
}

void failure_plan::clear() {
  const std::lock_guard lock(mutex_);
  orders_.clear();
  armed_.store(false, std::memory_order_release);
}

CUresult failure_plan::check(driver::call c, int device) {
  const std::lock_guard lock(mutex_);
  CUresult given = CUDA_SUCCESS;
  for (order& o : orders_) {
    if (o.call != c || (o.device >= 0 && o.device != device)) continue;
    if (o.before > 0) {
      --o.before;
    } else if (o.left > 0 && given == CUDA_SUCCESS) {
      --o.left;
      given = o.with;
    }
  }
  orders_.erase(std::remove_if(orders_.begin(), orders_.end(), [](const order& o) { return o.left == 0; }),
                orders_.end());
  armed_.store(!orders_.empty(), std::memory_order_release);
  return given;
}

void cost_plan::use_defaults(double sleep_scale) {
  const std::lock_guard lock(mutex_);
  defaults_ = true;
  sleep_scale_ = sleep_scale;
  active_.store(true, std::memory_order_release);
}

void cost_plan::set(driver::call c, std::chrono::nanoseconds cost, int device) {
  const std::lock_guard lock(mutex_);
  fixed_[{c, device}] = static_cast<std::uint64_t>(cost.count());
  active_.store(true, std::memory_order_release);
}

cost_plan::price cost_plan::of(driver::call c, int device, std::uint64_t hint) const {
  const std::lock_guard lock(mutex_);
  for (const int place : {device, -1}) {
    if (const auto it = fixed_.find({c, place}); it != fixed_.end()) return {it->second, it->second};
  }
  if (!defaults_) return {};
  const std::uint64_t cost = hint != 0 ? hint : default_cost(c);
  const bool sleeps = sleep_scale_ > 0.0 && cost >= 1000;
  return {cost, sleeps ? static_cast<std::uint64_t>(static_cast<double>(cost) * sleep_scale_) : 0};
}

}  // namespace weir::sim
