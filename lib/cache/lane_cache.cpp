#include "cache/lane_cache.hpp"

#include <span>

#include "cache/thread_cache.hpp"

namespace weir::cache {

namespace {

// The bins of classes; the others are never touched.
template <class Cache>
auto class_bins(Cache& c) noexcept {
  return std::span(c.bins).subspan(heap::code_of_class0 | heap::live_bit, heap::class_count);
}

}  // namespace

// What a bin is for ever. Statistics may still read a recycled cache through an old lane: these are not written twice.
void lane_cache::lay_out() noexcept {
  cached_block* at = slots.data();
  for (std::uint32_t c = 0; c < heap::class_count; ++c) {
    const heap::class_info& k = heap::classes[c];
    cache_bin& b = bin_of(c);
    b.bottom = at;
    at += k.magazine_limit;
    b.block_bytes = k.bytes;
    b.waste_shift = k.waste_shift;
    b.waste_offset = k.waste_offset;
    b.live_state = heap::code_of(c) | heap::live_bit;
    b.free_state = heap::code_of(c);
    b.limit = k.magazine_limit;
  }
}

void lane_cache::start(heap::lane_heap& lane, thread_cache& t, bool captured) noexcept {
  if (bin_of(0).bottom == nullptr) lay_out();
  heap = &lane;
  thread = &t;
  steal_hand = 0;
  seen_work.store(0, std::memory_order_relaxed);
  for (cache_bin& b : class_bins(*this)) {
    b.end = b.bottom;
    b.set_count(0);
    b.allocations.store(0, std::memory_order_relaxed);
    b.room_.store(0, std::memory_order_relaxed);
  }
  owner.reset(captured);
}

std::uint64_t lane_cache::room_bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const cache_bin& b : class_bins(*this)) sum += std::uint64_t{b.room()} * b.block_bytes;
  return sum;
}

std::uint64_t lane_cache::cached_bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const cache_bin& b : class_bins(*this)) sum += std::uint64_t{b.count()} * b.block_bytes;
  return sum;
}

std::uint64_t lane_cache::allocation_count() const noexcept {
  std::uint64_t sum = 0;
  for (const cache_bin& b : class_bins(*this)) sum += b.allocations.load(std::memory_order_relaxed);
  return sum;
}

std::uint64_t lane_cache::work() const noexcept {
  // A free moves a count, an allocation a counter; a use that leaves both sums as they were is as good as none.
  std::uint64_t sum = 0;
  for (const cache_bin& b : class_bins(*this)) {
    sum += b.allocations.load(std::memory_order_relaxed) * 1000003 + b.count();
  }
  return sum;
}

void lane_cache::hand_over_counts() noexcept {
  heap->allocations.fetch_add(allocation_count(), std::memory_order_relaxed);
  for (cache_bin& b : class_bins(*this)) b.allocations.store(0, std::memory_order_relaxed);
}

void lane_cache::set_room(cache_bin& b, std::uint32_t room) noexcept {
  // Signed by wrapping: less room subtracts.
  thread->room_bytes.fetch_add((std::uint64_t{room} - b.room()) * b.block_bytes, std::memory_order_relaxed);
  b.room_.store(room, std::memory_order_relaxed);
  b.end = heap->hardened ? b.bottom : b.bottom + room;
}

void lane_cache::forget_room() noexcept {
  for (cache_bin& b : class_bins(*this)) set_room(b, 0);
}

std::uint64_t lane_cache::drain() noexcept {
  std::uint64_t moved = 0;
  for (cache_bin& b : class_bins(*this)) {
    for (std::uint32_t n = b.count(); n != 0; --n) {
      const auto address = reinterpret_cast<std::uint64_t>(b.bottom[n - 1].address);
      // Counted out before it is given back: a thread stopped in between loses one block, and none is given twice.
      b.set_count(n - 1);
      heap->give_block(*heap::find_slot(address), address);
      moved += b.block_bytes;
    }
  }
  return moved;
}

}  // namespace weir::cache
