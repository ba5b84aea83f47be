#include "cache/lane_cache.hpp"

#include "cache/thread_cache.hpp"

namespace weir::cache {

void lane_cache::start(heap::lane_heap& lane, thread_cache& t, bool captured) noexcept {
  heap = &lane;
  thread = &t;
  steal_hand = 0;
  seen_work.store(0, std::memory_order_relaxed);
  void** at = slots.data();
  for (std::uint32_t c = 0; c < heap::class_count; ++c) {
    const heap::class_info& k = heap::classes[c];
    cache_bin& b = bins[heap::code_of(c)];
    b.count.store(0, std::memory_order_relaxed);
    b.capacity = 0;
    b.slots = at;
    at += k.magazine_limit;
    b.allocations.store(0, std::memory_order_relaxed);
    b.waste.store(0, std::memory_order_relaxed);
    b.block_bytes = k.bytes;
    b.waste_shift = k.waste_shift;
    b.waste_offset = k.waste_offset;
    b.waste_mask = k.waste_mask;
    b.limit = k.magazine_limit;
  }
  owner.reset(captured);
}

std::uint64_t lane_cache::capacity_bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const cache_bin& b : bins) sum += std::uint64_t{b.capacity} * b.block_bytes;
  return sum;
}

std::uint64_t lane_cache::cached_bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const cache_bin& b : bins) sum += std::uint64_t{b.count.load(std::memory_order_relaxed)} * b.block_bytes;
  return sum;
}

std::uint64_t lane_cache::allocation_count() const noexcept {
  std::uint64_t sum = 0;
  for (const cache_bin& b : bins) sum += b.allocations.load(std::memory_order_relaxed);
  return sum;
}

std::uint64_t lane_cache::work() const noexcept {
  // A free moves a count, an allocation a counter; a use that leaves both sums as they were is as good as none.
  std::uint64_t sum = 0;
  for (const cache_bin& b : bins) {
    sum += b.allocations.load(std::memory_order_relaxed) * 1000003 + b.count.load(std::memory_order_relaxed);
  }
  return sum;
}

void lane_cache::forget_capacity() noexcept {
  thread->capacity_bytes.fetch_sub(capacity_bytes(), std::memory_order_relaxed);
  for (cache_bin& b : bins) b.capacity = 0;
}

std::uint64_t lane_cache::drain() noexcept {
  std::uint64_t moved = 0;
  for (cache_bin& b : bins) {
    for (std::uint32_t n = b.count.load(std::memory_order_relaxed); n != 0; --n) {
      const auto address = reinterpret_cast<std::uint64_t>(b.slots[n - 1]);
      // Counted out before it is given back: a thread stopped in between loses one block, and none is given twice.
      b.count.store(n - 1, std::memory_order_relaxed);
      heap->give_block(*heap::find_slot(address), address);
      moved += b.block_bytes;
    }
  }
  return moved;
}

}  // namespace weir::cache
