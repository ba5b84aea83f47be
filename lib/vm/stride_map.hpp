#pragma once
// Which strides (2 MiB) of a lane's pieces hold no chunk: a page heap whose unit is a stride, with a look at its words.
// A set bit is an address that is reserved and unmapped. Growth claims strides, the end of an unmap gives them back.

#include <algorithm>
#include <bit>
#include <cstdint>

#include "heap/page_heap.hpp"

namespace weir::vm {

class stride_map {
 public:
  static constexpr std::uint32_t strides = heap::lane_pages / heap::pages_per_stride;
  static constexpr std::size_t bits_bytes = strides / 8;
  static constexpr std::size_t bounds_bytes = std::size_t{strides} / heap::page_bounds::group_pages * 8;

  /// `storage`: bits_bytes + bounds_bytes zeroed bytes.
  void attach(void* storage) noexcept {
    bits_ = static_cast<std::atomic<std::uint64_t>*>(storage);
    map_.attach(bits_, bits_ + bits_bytes / 8, strides);
  }

  bool claim_at(std::uint32_t first, std::uint32_t count) noexcept { return map_.claim_at(first, count); }
  void release(std::uint32_t first, std::uint32_t count) noexcept { map_.release(first, count); }
  [[nodiscard]] std::uint64_t count_free(std::uint32_t first, std::uint32_t count) const noexcept {
    return map_.count_free(first, count);
  }
  [[nodiscard]] std::uint32_t extent() const noexcept { return map_.extent(); }

  /// The first unmapped stride in [from, limit), or limit. A moment's truth, as is next_used.
  [[nodiscard]] std::uint32_t next_unmapped(std::uint32_t from, std::uint32_t limit) const noexcept {
    return next(from, limit, 0);
  }
  [[nodiscard]] std::uint32_t next_used(std::uint32_t from, std::uint32_t limit) const noexcept {
    return next(from, limit, ~std::uint64_t{0});
  }

 private:
  [[nodiscard]] std::uint32_t next(std::uint32_t from, std::uint32_t limit, std::uint64_t flip) const noexcept {
    while (from < limit) {
      const std::uint64_t w = (bits_[from / 64].load(std::memory_order_relaxed) ^ flip) >> from % 64;
      if (w != 0) return std::min(limit, from + static_cast<std::uint32_t>(std::countr_zero(w)));
      from = (from / 64 + 1) * 64;
    }
    return limit;
  }

  std::atomic<std::uint64_t>* bits_ = nullptr;
  heap::page_heap<> map_;
};

}  // namespace weir::vm
