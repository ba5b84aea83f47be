#include "cache/miss.hpp"

#include <algorithm>

#include "cache/fast_path.hpp"

namespace weir::cache {

namespace {

void put(cache_bin& b, std::uint32_t at, void* block) noexcept {
  b.bottom[at] = {block, heap::state_of(reinterpret_cast<std::uint64_t>(block))};
}

// Moves `count` blocks from the bottom of the bin, the ones used longest ago, to the lane.
void flush_oldest(lane_cache& c, std::uint32_t cls, std::uint32_t count) noexcept {
  cache_bin& b = c.bin_of(cls);
  void* out[heap::magazine::capacity];
  const std::uint32_t have = b.count();
  for (std::uint32_t i = 0; i < count; ++i) out[i] = b.bottom[i].address;
  std::copy(b.bottom + count, b.bottom + have, b.bottom);
  b.set_count(have - count);
  c.heap->flush(cls, out, count);
}

void flush_to(lane_cache& c, std::uint32_t cls, std::uint32_t most) noexcept {
  const cache_bin& b = c.bin_of(cls);
  while (b.count() > most) flush_oldest(c, cls, std::min(b.count() - most, heap::magazine::capacity));
}

// Takes capacity from other bins of this cache, round robin, until `bytes` of the budget are free.
bool steal(lane_cache& c, const cache_bin& for_bin, std::uint64_t bytes) noexcept {
  const std::uint64_t budget = thread_budget.load(std::memory_order_relaxed);
  thread_cache& t = *c.thread;
  const auto short_of = [&] { return t.capacity_bytes.load(std::memory_order_relaxed) + bytes > budget; };
  for (std::uint32_t tries = 0; tries < heap::class_count && short_of(); ++tries) {
    const std::uint32_t other = c.steal_hand++ % heap::class_count;
    cache_bin& victim = c.bin_of(other);
    const std::uint32_t capacity = victim.capacity();
    if (&victim == &for_bin || capacity == 0) continue;
    const std::uint32_t left = capacity / 2;
    t.capacity_bytes.fetch_sub(std::uint64_t{capacity - left} * victim.block_bytes, std::memory_order_relaxed);
    victim.end = victim.bottom + left;
    flush_to(c, other, left);
  }
  return !short_of();
}

constexpr std::uint32_t dear_block = 128 << 10;

// How many blocks the bin may keep. In hardened mode `end` stays at the bottom, so the limit itself counts.
std::uint32_t room_of(const lane_cache& c, const cache_bin& b) noexcept {
  return c.heap->hardened ? b.limit : b.capacity();
}

// A miss earns capacity, within the class's limit and the thread's budget: twice as much for small blocks, one more for
// blocks of which a few are a lot.
std::uint32_t earn(lane_cache& c, std::uint32_t cls) noexcept {
  cache_bin& b = c.bin_of(cls);
  const std::uint32_t capacity = room_of(c, b);
  const std::uint32_t wanted =
      std::min<std::uint32_t>(b.limit, capacity + (b.block_bytes < dear_block ? std::max(1u, capacity) : 1));
  if (wanted <= capacity) return capacity;
  const std::uint64_t bytes = std::uint64_t{wanted - capacity} * b.block_bytes;
  if (!steal(c, b, bytes)) return capacity;
  c.thread->capacity_bytes.fetch_add(bytes, std::memory_order_relaxed);
  b.end = b.bottom + wanted;
  return wanted;
}

// An aligned request may take a larger class than its size: its waste is then more than the byte holds.
std::uint32_t waste_of(std::uint32_t block_bytes, std::uint32_t shift, std::size_t bytes) noexcept {
  return std::min((block_bytes - static_cast<std::uint32_t>(bytes)) >> shift, 127u);
}

void* make_live_in(cache_bin& b, void* block, std::size_t bytes) noexcept {
  count_one(b.allocations);
  make_live(b, heap::state_of(reinterpret_cast<std::uint64_t>(block)), waste_of(b.block_bytes, b.waste_shift, bytes));
  return block;
}

// Without a thread cache: the same with the lane's own counter.
void* make_live_alone(heap::lane_heap& lane, std::uint32_t cls, void* block, std::size_t bytes) noexcept {
  const heap::class_info& k = heap::classes[cls];
  cache_bin b{};
  b.waste_offset = k.waste_offset;
  b.live_state = heap::code_of(cls) | heap::live_bit;
  lane.allocations.fetch_add(1, std::memory_order_relaxed);
  make_live(b, heap::state_of(reinterpret_cast<std::uint64_t>(block)), waste_of(k.bytes, k.waste_shift, bytes));
  return block;
}

// Keeps what of `blocks` fits, the rest goes to the lane.
void store(lane_cache& c, std::uint32_t cls, void** blocks, std::uint32_t count, std::uint32_t capacity) noexcept {
  cache_bin& b = c.bin_of(cls);
  const std::uint32_t have = b.count();
  const std::uint32_t fits = std::min(count, capacity > have ? capacity - have : 0);
  const std::uint32_t rest = count - fits;
  if (rest != 0) c.heap->flush(cls, blocks, rest);
  for (std::uint32_t i = 0; i < fits; ++i) put(b, have + i, blocks[rest + i]);
  b.set_count(have + fits);
}

}  // namespace

void* allocate_miss(heap::lane_heap& lane, std::uint32_t cls, std::size_t bytes, bool thorough) noexcept {
  void* blocks[heap::magazine::capacity];
  lane_cache* c = enter_lane(lane);
  if (c == nullptr) {
    return lane.refill(cls, blocks, 1, thorough) == 0 ? nullptr : make_live_alone(lane, cls, blocks[0], bytes);
  }
  cache_bin& b = c->bin_of(cls);
  void* block = nullptr;
  if (const std::uint32_t have = b.count(); have != 0) {
    block = b.bottom[have - 1].address;
    b.set_count(have - 1);
  } else {
    const std::uint32_t capacity = earn(*c, cls);
    const std::uint32_t want = std::clamp(capacity, 1u, heap::classes[cls].batch);
    const std::uint32_t got = lane.refill(cls, blocks, want, thorough);
    if (got != 0) {
      block = blocks[got - 1];
      store(*c, cls, blocks, got - 1, capacity);
    }
  }
  if (block != nullptr) make_live_in(b, block, bytes);
  c->owner.leave();
  return block;
}

void* allocate_from(heap::lane_heap& lane, std::uint32_t first_page, std::uint32_t cls, std::size_t bytes) noexcept {
  void* blocks[heap::magazine::capacity];
  lane_cache* c = enter_lane(lane);
  if (c == nullptr) {
    lane.refill_from(first_page, cls, blocks, 1);
    return make_live_alone(lane, cls, blocks[0], bytes);
  }
  const std::uint32_t capacity = room_of(*c, c->bin_of(cls));
  const std::uint32_t want = std::clamp(capacity, 1u, heap::classes[cls].batch);
  const std::uint32_t got = lane.refill_from(first_page, cls, blocks, want);
  store(*c, cls, blocks, got - 1, capacity);
  make_live_in(c->bin_of(cls), blocks[got - 1], bytes);
  c->owner.leave();
  return blocks[got - 1];
}

void keep(heap::lane_heap& lane, std::uint32_t cls, void* block) noexcept {
  const auto give = [&] {
    const auto address = reinterpret_cast<std::uint64_t>(block);
    lane.give_block(*heap::find_slot(address), address);
  };
  lane_cache* c = enter_lane(lane);
  if (c == nullptr) return give();
  cache_bin& b = c->bin_of(cls);
  std::uint32_t capacity = room_of(*c, b);
  if (b.count() >= capacity) {
    capacity = earn(*c, cls);
    if (b.count() >= capacity && capacity > 1) {
      flush_oldest(*c, cls, std::min(capacity / 2, heap::magazine::capacity));
    }
  }
  const std::uint32_t count = b.count();
  if (count < capacity) {
    put(b, count, block);
    b.set_count(count + 1);
  } else {
    give();
  }
  c->owner.leave();
}

}  // namespace weir::cache
