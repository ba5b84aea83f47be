#pragma once
// Small, fast, repeatable random numbers (splitmix64).

#include <cstdint>

namespace weir::cli {

class random_source {
 public:
  explicit random_source(std::uint64_t seed) noexcept : state_(seed) {}

  std::uint64_t next() noexcept {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// 0 .. n - 1; n is at most 2^32.
  std::uint64_t below(std::uint64_t n) noexcept { return ((next() >> 32) * n) >> 32; }
  bool one_in(std::uint64_t n) noexcept { return below(n) == 0; }
  /// 0 <= x < 1.
  double unit() noexcept { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

}  // namespace weir::cli
