#pragma once
// Upper bounds of the free runs in a group of 64 words (4096 pages), in one word with a version:
//   prefix, suffix, longest: 13 bits each (0..4096), version: 25 bits.
// A bound may promise too much, never too little (but see page_heap.hpp for the moment inside a release).

#include <algorithm>
#include <cstdint>

namespace weir::heap {

struct page_bounds {
  static constexpr std::uint32_t group_pages = 4096;

  std::uint32_t prefix = 0;
  std::uint32_t suffix = 0;
  std::uint32_t longest = 0;
  std::uint32_t version = 0;

  [[nodiscard]] constexpr std::uint64_t pack() const noexcept {
    return std::uint64_t{prefix} | std::uint64_t{suffix} << 13 | std::uint64_t{longest} << 26 |
           std::uint64_t{version & 0x1ffffff} << 39;
  }
  static constexpr page_bounds unpack(std::uint64_t word) noexcept {
    return {static_cast<std::uint32_t>(word & 0x1fff), static_cast<std::uint32_t>(word >> 13 & 0x1fff),
            static_cast<std::uint32_t>(word >> 26 & 0x1fff), static_cast<std::uint32_t>(word >> 39)};
  }

  /// Both promises together, with the next version.
  [[nodiscard]] constexpr page_bounds raised(const page_bounds& o) const noexcept {
    return {std::max(prefix, o.prefix), std::max(suffix, o.suffix), std::max(longest, o.longest), version + 1};
  }
  [[nodiscard]] constexpr bool promises_more_than(const page_bounds& o) const noexcept {
    return prefix > o.prefix || suffix > o.suffix || longest > o.longest;
  }
};

}  // namespace weir::heap
