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

bool short_of(const thread_cache& t, std::uint64_t bytes) noexcept {
  return t.room_bytes.load(std::memory_order_relaxed) + bytes > thread_budget.load(std::memory_order_relaxed);
}

// Halves the room of the cache's bins, round robin, until `bytes` of the thread's budget are free.
void steal_from(lane_cache& c, const cache_bin* but, std::uint64_t bytes) noexcept {
  for (std::uint32_t tries = 0; tries < heap::class_count && short_of(*c.thread, bytes); ++tries) {
    const std::uint32_t cls = c.steal_hand++ % heap::class_count;
    cache_bin& victim = c.bin_of(cls);
    if (&victim == but || victim.room() == 0) continue;
    c.set_room(victim, victim.room() / 2);
    flush_to(c, cls, victim.room());
  }
}

// The thread's other lanes give first: who misses here works here. When the budget is spent only every 16th try takes
// from others: taking room costs its bin the blocks in it, and bins that all lack room would empty each other.
bool steal(lane_cache& c, const cache_bin& for_bin, std::uint64_t bytes) noexcept {
  thread_cache& t = *c.thread;
  if (!short_of(t, bytes)) return true;
  if (++t.steal_tries % 16 != 0) return false;
  constexpr std::uint32_t looks = 256;  // lanes looked at for one bin's room
  for (std::uint32_t tries = 0; tries < looks && short_of(t, bytes); ++tries) {
    if (t.steal_hand >= t.lanes_end) t.steal_hand = 0;
    lane_cache* other = t.lanes[t.steal_hand++].load(std::memory_order_relaxed);
    if (other == nullptr || other == &c) continue;
    if (other->owner.enter()) steal_from(*other, nullptr, bytes);
    other->owner.leave();
  }
  steal_from(c, &for_bin, bytes);
  return !short_of(t, bytes);
}

constexpr std::uint32_t dear_block = 128 << 10;

// A miss earns room, within the class's limit and the thread's budget: twice as much for small blocks, one block more
// for those of which a few are a lot.
std::uint32_t earn(lane_cache& c, std::uint32_t cls) noexcept {
  cache_bin& b = c.bin_of(cls);
  const std::uint32_t more = b.block_bytes < dear_block ? std::max(1u, b.room()) : 1;
  const std::uint32_t wanted = std::min<std::uint32_t>(b.limit, b.room() + more);
  if (wanted > b.room() && steal(c, b, std::uint64_t{wanted - b.room()} * b.block_bytes)) c.set_room(b, wanted);
  return b.room();
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
void store(lane_cache& c, std::uint32_t cls, void** blocks, std::uint32_t count, std::uint32_t room) noexcept {
  cache_bin& b = c.bin_of(cls);
  const std::uint32_t have = b.count();
  const std::uint32_t fits = std::min(count, room > have ? room - have : 0);
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
    const std::uint32_t room = earn(*c, cls);
    const std::uint32_t want = std::clamp(room, 1u, heap::classes[cls].batch);
    const std::uint32_t got = lane.refill(cls, blocks, want, thorough);
    if (got != 0) {
      block = blocks[got - 1];
      store(*c, cls, blocks, got - 1, room);
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
  const std::uint32_t room = c->bin_of(cls).room();
  const std::uint32_t want = std::clamp(room, 1u, heap::classes[cls].batch);
  const std::uint32_t got = lane.refill_from(first_page, cls, blocks, want);
  store(*c, cls, blocks, got - 1, room);
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
  std::uint32_t room = b.room();
  if (b.count() >= room) {
    room = earn(*c, cls);
    if (b.count() >= room && room > 1) {
      flush_oldest(*c, cls, std::min(room / 2, heap::magazine::capacity));
    }
  }
  const std::uint32_t count = b.count();
  if (count < room) {
    put(b, count, block);
    b.set_count(count + 1);
  } else {
    give();
  }
  c->owner.leave();
}

}  // namespace weir::cache
