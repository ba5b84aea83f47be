#pragma once
// Repeatable random numbers (splitmix64).

#include <cstdint>

namespace weir::heap {

class dice {
 public:
  explicit dice(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}

  std::uint64_t roll() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  /// 0 .. n - 1.
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>((roll() >> 32) * n >> 32); }
  /// least .. most, small ones more often.
  std::uint32_t skewed(std::uint32_t least, std::uint32_t most) {
    return least + below(1 + below(1 + below(most - least + 1)));
  }
  bool chance(std::uint32_t in) { return below(in) == 0; }

 private:
  std::uint64_t state_;
};

}  // namespace weir::heap
