#pragma once
// A lane over addresses that nothing lies behind: the heap never touches them.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "heap/lane_heap.hpp"

namespace weir::heap {

/// Addresses that no other test of the program uses.
inline std::uint64_t fresh_base(std::size_t bytes) {
  static std::atomic<std::uint64_t> next{std::uint64_t{0x2000} << slot_shift};
  return next.fetch_add((bytes + slot_bytes - 1) / slot_bytes * slot_bytes);
}

inline lane_heap* fresh_lane() {
  static std::atomic<std::uint32_t> number{1};  // 0: no lane
  return lane_heap::make(number.fetch_add(1));
}

/// A lane with one piece, of which the first `mapped` bytes are mapped and free.
struct mapped_lane {
  explicit mapped_lane(std::size_t mapped, std::size_t piece = slot_bytes)
      : heap(*fresh_lane()), base(fresh_base(piece)), first(heap.add_piece(base, piece)), mapped_bytes(mapped) {
    heap.pages.release(first, static_cast<std::uint32_t>(mapped >> page_shift));
  }
  lane_heap* operator->() const { return &heap; }

  /// Every byte that is mapped is accounted for, and nothing is wrong.
  void expect_sound() const {
    EXPECT_STREQ(heap.fault(), nullptr);
    const lane_counts c = heap.count();
    EXPECT_EQ(c.free_pages + c.large + c.large_pending + c.in_spans + c.slack, mapped_bytes);
    // What the spans gave out is in callers' hands or in bins.
    EXPECT_EQ(heap.taken(), c.large + c.large_pending + c.in_spans - c.free_in_spans);
    EXPECT_LE(c.in_bins, heap.bin_limit.load());
    EXPECT_LE(heap.taken(), heap.taken_peak.load());
  }
  /// All is free pages again once bins and free spans are given back.
  void expect_all_free() const {
    heap.empty_bins();
    heap.release_free_spans();
    expect_sound();
    EXPECT_EQ(heap.taken(), 0u);
    EXPECT_EQ(heap.count().free_pages, mapped_bytes);
    EXPECT_EQ(heap.pages.longest_free(), mapped_bytes >> page_shift);
  }

  lane_heap& heap;
  std::uint64_t base;
  std::uint32_t first;
  std::size_t mapped_bytes;
};

inline std::uint64_t number_of(const void* block) { return reinterpret_cast<std::uint64_t>(block); }

/// Up to `want` blocks.
inline std::vector<void*> refill(lane_heap& h, std::uint32_t cls, std::uint32_t want, bool thorough = false) {
  std::vector<void*> out(magazine::capacity);
  out.resize(h.refill(cls, out.data(), want, thorough));
  return out;
}

/// Gives blocks back through the bins, at most a magazine at a time.
inline void flush(lane_heap& h, std::uint32_t cls, const std::vector<void*>& blocks) {
  for (std::size_t done = 0; done < blocks.size(); done += magazine::capacity) {
    h.flush(cls, blocks.data() + done,
            static_cast<std::uint32_t>(std::min<std::size_t>(magazine::capacity, blocks.size() - done)));
  }
}

/// Every block of the class that the lane has.
inline std::vector<void*> drain(lane_heap& h, std::uint32_t cls) {
  std::vector<void*> all;
  for (std::vector<void*> some = refill(h, cls, magazine::capacity); !some.empty();
       some = refill(h, cls, magazine::capacity)) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

}  // namespace weir::heap
