#include "cli/histogram.hpp"

#include <algorithm>
#include <cmath>

namespace weir::cli {

std::uint64_t histogram::percentile(double fraction) const noexcept {
  if (count_ == 0) return 0;
  const double wanted = std::ceil(fraction * static_cast<double>(count_));
  const std::uint64_t rank = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(std::max(wanted, 1.0)), 1, count_);
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (seen >= rank) return std::min(first(i) + (last(i) - first(i)) / 2, max_);
  }
  return max_;
}

}  // namespace weir::cli
