#pragma once
// Random numbers and sizes that cost next to nothing beside an allocation.

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace weir::bench {

// One multiplication a number (Knuth's MMIX constants); the upper bits are good, so only those are given out.
class generator {
 public:
  explicit generator(std::uint64_t seed) noexcept : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  std::uint32_t next() noexcept {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>(state_ >> 32);
  }

 private:
  std::uint64_t state_;
};

// Sizes spread evenly over the logarithm between `low` and `high`: drawing an entry at random is a log-uniform draw.
// A table, because `exp` would cost more than the allocation that is measured.
template <std::size_t count>
class log_uniform_sizes {
  static_assert((count & (count - 1)) == 0);

 public:
  log_uniform_sizes(double low, double high) {
    for (std::size_t i = 0; i < count; ++i) {
      const double at = (static_cast<double>(i) + 0.5) / static_cast<double>(count);
      sizes_[i] = static_cast<std::uint32_t>(low * std::pow(high / low, at));
    }
  }
  [[nodiscard]] std::size_t at(std::uint32_t random) const noexcept { return sizes_[random & (count - 1)]; }

 private:
  std::array<std::uint32_t, count> sizes_{};
};

}  // namespace weir::bench
