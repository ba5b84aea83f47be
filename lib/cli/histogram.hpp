#pragma once
// Times in nanoseconds, counted in log-linear buckets: 32 a doubling, so a percentile is exact to 3 %.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace weir::cli {

class histogram {
 public:
  static constexpr unsigned steps_log2 = 5;
  static constexpr std::size_t steps = std::size_t{1} << steps_log2;

  void add(std::uint64_t ns) noexcept {
    ++counts_[bucket(ns)];
    ++count_;
    if (ns > max_) max_ = ns;
  }
  void add(const histogram& other) noexcept {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    count_ += other.count_;
    if (other.max_ > max_) max_ = other.max_;
  }

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] std::uint64_t max() const noexcept { return max_; }

  /// The smallest time that at least `fraction` (0..1) of all are at or below, as the middle of its bucket and never
  /// above `max`. 0 where nothing was counted.
  [[nodiscard]] std::uint64_t percentile(double fraction) const noexcept;

  /// The bucket of a time, and the first and last time of a bucket.
  [[nodiscard]] static constexpr std::size_t bucket(std::uint64_t ns) noexcept {
    if (ns < steps) return static_cast<std::size_t>(ns);
    const unsigned shift = static_cast<unsigned>(std::bit_width(ns)) - steps_log2 - 1;
    return (std::size_t{shift} << steps_log2) + static_cast<std::size_t>(ns >> shift);
  }
  [[nodiscard]] static constexpr std::uint64_t first(std::size_t bucket) noexcept {
    if (bucket < 2 * steps) return bucket;
    const std::size_t shift = (bucket >> steps_log2) - 1;
    return (steps + (bucket & (steps - 1))) << shift;
  }
  [[nodiscard]] static constexpr std::uint64_t last(std::size_t bucket) noexcept {
    if (bucket < 2 * steps) return bucket;
    return first(bucket) + ((std::uint64_t{1} << ((bucket >> steps_log2) - 1)) - 1);
  }

 private:
  // The highest bucket is that of 2^64 - 1.
  std::array<std::uint64_t, (64 - steps_log2 + 1) * steps> counts_{};
  std::uint64_t count_ = 0;
  std::uint64_t max_ = 0;
};

}  // namespace weir::cli
