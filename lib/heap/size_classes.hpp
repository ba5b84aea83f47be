#pragma once
// Size classes of span blocks: every 256 B up to 2 KiB, then 8 steps per doubling up to 1 MiB (the spacing of
// jemalloc's and tcmalloc's successors; at most 12.5 % of a block above 2 KiB is waste). Waste per class:
// docs/sizes.md.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "weir/types.hpp"

#include "heap/units.hpp"

namespace weir::heap {

using size_class = std::uint8_t;

inline constexpr std::uint32_t class_count = 80;

struct class_info {
  std::uint32_t bytes = 0;        // of a block
  std::uint32_t pages = 0;        // of a span
  std::uint32_t blocks = 0;       // in a span
  std::uint32_t batch = 0;        // blocks in a full magazine
  std::uint8_t waste_shift = 0;   // waste inside a block is kept in units of 2^shift: 7 bits
  std::uint8_t waste_offset = 0;  // of the state byte that keeps it; 0 where a block is one granule
  std::uint8_t waste_mask = 0;
  std::uint8_t magazine_limit = 0;  // most blocks of this class in one thread's cache
};

namespace detail {

constexpr std::uint32_t bytes_of_class(std::uint32_t index) {
  if (index < 8) return (index + 1) * static_cast<std::uint32_t>(granule_bytes);
  const std::uint32_t doubling = (index - 8) / 8;
  const std::uint32_t step = (index - 8) % 8 + 1;
  const std::uint32_t base = 2048u << doubling;
  return base + base / 8 * step;
}

// The span length between 4 and 16 blocks (at least a page) with the least share of tail; the shortest of equals.
constexpr std::uint32_t span_pages(std::uint32_t bytes) {
  const std::uint32_t least = std::max(1u, pages_for(std::size_t{bytes} * 4));
  const std::uint32_t most = std::max(1u, pages_for(std::size_t{bytes} * 16));
  std::uint32_t best = least;
  std::uint64_t best_tail = ~std::uint64_t{0};  // tail / length, compared crosswise
  std::uint64_t best_length = 1;
  for (std::uint32_t n = least; n <= most; ++n) {
    const std::uint64_t length = std::uint64_t{n} << page_shift;
    const std::uint64_t tail = length % bytes;
    if (best_tail == ~std::uint64_t{0} || tail * best_length < best_tail * length) {
      best = n;
      best_tail = tail;
      best_length = length;
    }
  }
  return best;
}

constexpr std::array<class_info, class_count> make_classes() {
  std::array<class_info, class_count> all{};
  for (std::uint32_t i = 0; i < class_count; ++i) {
    class_info& c = all[i];
    c.bytes = bytes_of_class(i);
    c.pages = span_pages(c.bytes);
    c.blocks = static_cast<std::uint32_t>((std::size_t{c.pages} << page_shift) / c.bytes);
    // A magazine moves up to 4 MiB, at most 30 blocks (its size); of the largest, the four of a span.
    c.batch = std::clamp((4u << 20) / c.bytes, 2u, 30u);
    c.magazine_limit = static_cast<std::uint8_t>(c.batch * 2);
    const std::uint32_t step = c.bytes - (i == 0 ? 0 : bytes_of_class(i - 1));
    c.waste_shift = static_cast<std::uint8_t>(std::countr_zero(step) - 7);
    c.waste_offset = i == 0 ? 0 : 1;
    c.waste_mask = i == 0 ? 0 : 0x7f;
  }
  return all;
}

constexpr std::uint32_t small_granules = static_cast<std::uint32_t>(max_small_bytes >> granule_shift);

constexpr std::array<size_class, small_granules + 1> make_class_of_granules() {
  std::array<size_class, small_granules + 1> table{};
  std::uint32_t c = 0;
  for (std::uint32_t granules = 1; granules <= small_granules; ++granules) {
    while (bytes_of_class(c) < granules * granule_bytes) ++c;
    table[granules] = static_cast<size_class>(c);
  }
  return table;
}

}  // namespace detail

inline constexpr std::array<class_info, class_count> classes = detail::make_classes();
inline constexpr auto class_of_granules = detail::make_class_of_granules();

static_assert(classes[0].bytes == 256 && classes[7].bytes == 2048);
static_assert(classes[class_count - 1].bytes == max_small_bytes);
static_assert(std::all_of(classes.begin(), classes.end(), [](const class_info& c) { return c.blocks <= 256; }),
              "the bits of a span are four words");

/// REQUIRES: 1 <= bytes <= max_small_bytes.
constexpr size_class class_of(std::size_t bytes) noexcept {
  return class_of_granules[(bytes + granule_bytes - 1) >> granule_shift];
}

/// The smallest class whose blocks of a 64 KiB-aligned span all lie at multiples of `alignment` (a power of two, at
/// most a page); class_count where there is none.
constexpr std::uint32_t class_of(std::size_t bytes, std::size_t alignment) noexcept {
  std::uint32_t c = class_of(bytes);
  while (c < class_count && classes[c].bytes % alignment != 0) ++c;
  return c;
}

}  // namespace weir::heap
