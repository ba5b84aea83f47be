#include "cache/miss.hpp"

#include <algorithm>
#include <cstring>

#include "cache/fast_path.hpp"

namespace weir::cache {

namespace {

// Moves `count` blocks from the bottom of the bin, the ones used longest ago, to the lane.
void flush_oldest(lane_cache& c, heap::state_byte code, std::uint32_t count) noexcept {
  cache_bin& b = c.bins[code];
  void* out[heap::magazine::capacity];
  const std::uint32_t have = b.count.load(std::memory_order_relaxed);
  std::memcpy(out, b.slots, count * sizeof(void*));
  std::memmove(b.slots, b.slots + count, (have - count) * sizeof(void*));
  b.count.store(have - count, std::memory_order_relaxed);
  c.heap->flush(heap::class_of_code(code), out, count);
}

void flush_to(lane_cache& c, heap::state_byte code, std::uint32_t most) noexcept {
  cache_bin& b = c.bins[code];
  while (b.count.load(std::memory_order_relaxed) > most) {
    flush_oldest(c, code, std::min(b.count.load(std::memory_order_relaxed) - most, heap::magazine::capacity));
  }
}

// Takes capacity from other bins of this cache, round robin, until `bytes` of the budget are free.
bool steal(lane_cache& c, const cache_bin& for_bin, std::uint64_t bytes) noexcept {
  const std::uint64_t budget = thread_budget.load(std::memory_order_relaxed);
  thread_cache& t = *c.thread;
  const auto short_of = [&] { return t.capacity_bytes.load(std::memory_order_relaxed) + bytes > budget; };
  for (std::uint32_t tries = 0; tries < heap::class_count && short_of(); ++tries) {
    const auto code = heap::code_of(c.steal_hand++ % heap::class_count);
    cache_bin& victim = c.bins[code];
    if (&victim == &for_bin || victim.capacity == 0) continue;
    const std::uint32_t left = victim.capacity / 2;
    t.capacity_bytes.fetch_sub(std::uint64_t{victim.capacity - left} * victim.block_bytes, std::memory_order_relaxed);
    victim.capacity = left;
    flush_to(c, code, left);
  }
  return !short_of();
}

// A miss earns capacity: twice as much up to the class's limit, within the thread's budget. In hardened mode capacity
// stays 0 (every free takes the slow path), so the limit itself counts.
std::uint32_t earn(lane_cache& c, heap::state_byte code) noexcept {
  cache_bin& b = c.bins[code];
  if (c.heap->hardened) return b.limit;
  const std::uint32_t wanted = std::min<std::uint32_t>(b.limit, std::max(1u, b.capacity * 2));
  if (wanted > b.capacity) {
    const std::uint64_t bytes = std::uint64_t{wanted - b.capacity} * b.block_bytes;
    if (steal(c, b, bytes)) {
      c.thread->capacity_bytes.fetch_add(bytes, std::memory_order_relaxed);
      b.capacity = wanted;
    }
  }
  return b.capacity;
}

void* make_live_in(lane_cache& c, heap::state_byte code, void* block, std::size_t bytes) noexcept {
  cache_bin& b = c.bins[code];
  // An aligned request may take a larger class than its size: the waste is then more than the byte holds.
  const std::uint32_t waste = std::min(waste_of(b, bytes), 127u) & b.waste_mask;
  add(b.allocations, std::uint64_t{1});
  add(b.waste, std::int64_t{waste});
  const auto address = reinterpret_cast<std::uint64_t>(block);
  const heap::slot* s = heap::find_slot(address);
  make_live(s->states + heap::granule_in_slot(address), b, code, waste);
  return block;
}

// Without a thread cache: the same with the lane's own counters.
void* make_live_alone(heap::lane_heap& lane, std::uint32_t cls, void* block, std::size_t bytes) noexcept {
  const heap::class_info& k = heap::classes[cls];
  const std::uint32_t waste =
      std::min((k.bytes - static_cast<std::uint32_t>(bytes)) >> k.waste_shift, 127u) & k.waste_mask;
  lane.allocations.fetch_add(1, std::memory_order_relaxed);
  lane.waste_units[cls].fetch_add(waste, std::memory_order_relaxed);
  const auto address = reinterpret_cast<std::uint64_t>(block);
  heap::atomic_state* state = heap::find_slot(address)->states + heap::granule_in_slot(address);
  state[k.waste_offset].store(static_cast<heap::state_byte>(waste), std::memory_order_relaxed);
  state[0].store(heap::code_of(cls) | heap::live_bit, std::memory_order_relaxed);
  return block;
}

// Keeps what of `blocks` fits, the rest goes to the lane.
void store(lane_cache& c, heap::state_byte code, void** blocks, std::uint32_t count, std::uint32_t capacity) noexcept {
  cache_bin& b = c.bins[code];
  const std::uint32_t have = b.count.load(std::memory_order_relaxed);
  const std::uint32_t fits = std::min(count, capacity > have ? capacity - have : 0);
  const std::uint32_t rest = count - fits;
  if (rest != 0) c.heap->flush(heap::class_of_code(code), blocks, rest);
  std::memcpy(b.slots + have, blocks + rest, fits * sizeof(void*));
  b.count.store(have + fits, std::memory_order_relaxed);
}

}  // namespace

void* allocate_miss(heap::lane_heap& lane, std::uint32_t cls, std::size_t bytes, bool thorough) noexcept {
  void* blocks[heap::magazine::capacity];
  lane_cache* c = enter_lane(lane);
  if (c == nullptr) {
    return lane.refill(cls, blocks, 1, thorough) == 0 ? nullptr : make_live_alone(lane, cls, blocks[0], bytes);
  }
  const heap::state_byte code = heap::code_of(cls);
  cache_bin& b = c->bins[code];
  void* block = nullptr;
  if (const std::uint32_t have = b.count.load(std::memory_order_relaxed); have != 0) {
    block = b.slots[have - 1];
    b.count.store(have - 1, std::memory_order_relaxed);
  } else {
    const std::uint32_t capacity = earn(*c, code);
    const std::uint32_t want = std::clamp(capacity, 1u, heap::classes[cls].batch);
    const std::uint32_t got = lane.refill(cls, blocks, want, thorough);
    if (got != 0) {
      block = blocks[got - 1];
      store(*c, code, blocks, got - 1, capacity);
    }
  }
  if (block != nullptr) make_live_in(*c, code, block, bytes);
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
  const heap::state_byte code = heap::code_of(cls);
  const std::uint32_t capacity = c->heap->hardened ? c->bins[code].limit : c->bins[code].capacity;
  const std::uint32_t want = std::clamp(capacity, 1u, heap::classes[cls].batch);
  const std::uint32_t got = lane.refill_from(first_page, cls, blocks, want);
  store(*c, code, blocks, got - 1, capacity);
  make_live_in(*c, code, blocks[got - 1], bytes);
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
  const heap::state_byte code = heap::code_of(cls);
  cache_bin& b = c->bins[code];
  std::uint32_t capacity = c->heap->hardened ? b.limit : b.capacity;
  if (b.count.load(std::memory_order_relaxed) >= capacity) {
    capacity = earn(*c, code);
    if (b.count.load(std::memory_order_relaxed) >= capacity && capacity > 1) {
      flush_oldest(*c, code, std::min(capacity / 2, heap::magazine::capacity));
    }
  }
  const std::uint32_t count = b.count.load(std::memory_order_relaxed);
  if (count < capacity) {
    b.slots[count] = block;
    b.count.store(count + 1, std::memory_order_relaxed);
  } else {
    give();
  }
  c->owner.leave();
}

}  // namespace weir::cache
