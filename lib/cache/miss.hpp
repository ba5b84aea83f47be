#pragma once
// The misses of the thread cache: what the lane's own mapped memory can serve. Lock-free; no driver call.

#include <cstddef>
#include <cstdint>

#include "cache/thread_cache.hpp"

namespace weir::cache {

/// A live block of the class for `bytes`, from the thread's cache, the lane's bins, spans or pages; null if the lane
/// has none. `thorough`: null is then true of one moment (page_heap.hpp).
void* allocate_miss(heap::lane_heap& lane, std::uint32_t cls, std::size_t bytes, bool thorough) noexcept;

/// The same from pages that the caller claimed for a span of the class: never null.
void* allocate_from(heap::lane_heap& lane, std::uint32_t first_page, std::uint32_t cls, std::size_t bytes) noexcept;

/// Keeps a block of the lane that is free already (its state byte says so): in the thread's cache, a bin, or its span.
void keep(heap::lane_heap& lane, std::uint32_t cls, void* block) noexcept;

}  // namespace weir::cache
