#include "cli/granule_map.hpp"

#include <algorithm>
#include <bit>

namespace weir::cli {

granule_map::granule_map() : ranges_(std::size_t{1} << (address_log2 - range_log2)) {}

granule_map::~granule_map() {
  for (const auto& r : ranges_) delete[] r.load(std::memory_order_relaxed);
}

granule_map::word* granule_map::range(std::uint64_t address) {
  std::atomic<word*>& at = ranges_.at(address >> range_log2);
  word* known = at.load(std::memory_order_acquire);
  if (known != nullptr) return known;
  std::unique_ptr<word[]> fresh(new word[words_a_range]());
  if (at.compare_exchange_strong(known, fresh.get(), std::memory_order_acq_rel)) return fresh.release();
  return known;
}

template <bool Claim>
std::uint64_t granule_map::change(std::uint64_t first, std::uint64_t bytes) {
  std::uint64_t fault = 0;
  std::uint64_t at = first / granule;
  const std::uint64_t end = (first + bytes + granule - 1) / granule;
  while (at < end) {
    const std::uint64_t bit = at % 64;
    const std::uint64_t count = std::min<std::uint64_t>(64 - bit, end - at);
    const std::uint64_t mask = (count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1) << bit;
    word& w = range(at * granule)[at / 64 % words_a_range];
    // A block changes hands through the allocator's own synchronisation: no order of ours may hide a lack of it.
    const std::uint64_t before =
        Claim ? w.fetch_or(mask, std::memory_order_relaxed) : w.fetch_and(~mask, std::memory_order_relaxed);
    const std::uint64_t wrong = Claim ? before & mask : ~before & mask;
    if (wrong != 0 && fault == 0) {
      fault = (at - bit + static_cast<std::uint64_t>(std::countr_zero(wrong))) * granule;
    }
    at += count;
  }
  return fault;
}

std::uint64_t granule_map::claim(const void* block, std::uint64_t bytes) {
  return change<true>(reinterpret_cast<std::uint64_t>(block), bytes);
}

std::uint64_t granule_map::release(const void* block, std::uint64_t bytes) {
  return change<false>(reinterpret_cast<std::uint64_t>(block), bytes);
}

std::uint64_t granule_map::held() const {
  std::uint64_t count = 0;
  for (const auto& r : ranges_) {
    const word* words = r.load(std::memory_order_acquire);
    if (words == nullptr) continue;
    for (std::uint64_t i = 0; i < words_a_range; ++i) {
      count += static_cast<std::uint64_t>(std::popcount(words[i].load(std::memory_order_relaxed)));
    }
  }
  return count;
}

}  // namespace weir::cli
