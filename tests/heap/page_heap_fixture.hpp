#pragma once
// A page heap with its words, nothing mapped.

#include <atomic>
#include <cstdint>
#include <memory>

#include "heap/page_heap.hpp"

namespace weir::heap {

template <template <class> class Atom = std::atomic>
struct owned_page_heap {
  using word = Atom<std::uint64_t>;

  explicit owned_page_heap(std::uint32_t page_count)
      : bits(new word[page_count / 64]{}),
        bounds(new word[page_count / page_bounds::group_pages]{}),
        heap(bits.get(), bounds.get(), page_count) {}

  page_heap<Atom>* operator->() { return &heap; }

  /// What the bounds of a group promise.
  [[nodiscard]] page_bounds promised(std::uint32_t group) const { return page_bounds::unpack(bounds[group].load()); }

  std::unique_ptr<word[]> bits;
  std::unique_ptr<word[]> bounds;
  page_heap<Atom> heap;
};

}  // namespace weir::heap
