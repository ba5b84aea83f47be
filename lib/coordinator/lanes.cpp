#include "coordinator/lanes.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include "cache/taking.hpp"
#include "coordinator/lane_directory.hpp"
#include "vm/streams.hpp"
#include "vm/trim.hpp"

namespace weir::coordinator {

namespace {

std::size_t bucket_of(const device_state& d, std::uint64_t stream_id, const pool_state* pool) noexcept {
  std::uint64_t h = stream_id * 0x9e3779b97f4a7c15ull;
  h ^= (reinterpret_cast<std::uint64_t>(pool) >> 4) * 0xc2b2ae3d27d4eb4full;
  h ^= static_cast<std::uint64_t>(d.memory.ordinal()) << 32;
  return (h ^ h >> 29) % core::buckets;
}

bool is(const lane_state& l, const core& c, const device_state& d, std::uint64_t stream_id,
        const pool_state* pool) noexcept {
  return l.core.load(std::memory_order_acquire) == &c && l.device == &d && l.base.stream_id == stream_id &&
         l.pool == pool && !l.base.retired.load(std::memory_order_acquire);
}

// The driver's handle for "the calling thread's default stream".
CUstream per_thread() noexcept { return reinterpret_cast<CUstream>(std::uintptr_t{2}); }

}  // namespace

lane_state* find_lane(core& c, const device_state& d, std::uint64_t stream_id, const pool_state* pool) noexcept {
  lane_state* l = c.table[bucket_of(d, stream_id, pool)].load(std::memory_order_acquire);
  // Bounded: a record that is used again may lead into another chain.
  for (int steps = 0; l != nullptr && steps < 1000; ++steps) {
    if (is(*l, c, d, stream_id, pool)) return l;
    l = l->next.load(std::memory_order_acquire);
  }
  return nullptr;
}

lane_state* find_or_make_lane(core& c, device_state& d, CUstream stream, std::uint64_t stream_id,
                              pool_state* pool) noexcept {
  if (lane_state* l = find_lane(c, d, stream_id, pool)) return l;
  const std::lock_guard lock(c.lanes_mutex);
  if (lane_state* l = find_lane(c, d, stream_id, pool)) return l;
  lane_state* l = acquire_lane();
  if (l == nullptr) return nullptr;
  vm::lane& b = l->base;
  b.device = &d.memory;
  b.stream = stream;
  b.stream_id = stream_id;
  b.per_thread_default = stream == per_thread();
  b.retired.store(false, std::memory_order_relaxed);
  b.heap->hardened = c.options.hardened;
  b.heap->bin_limit.store(c.options.lane_cache, std::memory_order_relaxed);
  l->device = &d;
  l->pool = pool;
  l->creator = ::syscall(SYS_gettid);
  pool->hold();
  if (d.memory.announced_captures.load(std::memory_order_seq_cst) != 0) cache::set_captured(l->number(), true);
  l->core.store(&c, std::memory_order_release);
  std::atomic<lane_state*>& head = c.table[bucket_of(d, stream_id, pool)];
  l->next.store(head.load(std::memory_order_relaxed), std::memory_order_relaxed);
  head.store(l, std::memory_order_release);  // pairs with the acquire in find_lane
  return l;
}

lane_state* lane_of_stream(core& c, device_state& d, CUstream stream, pool_state* pool, CUresult& error) noexcept {
  const std::uint64_t id = vm::stream_id(d.memory, stream, error);
  if (error == CUDA_SUCCESS) return find_or_make_lane(c, d, stream, id, pool);
  if (error != CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) return nullptr;
  error = CUDA_SUCCESS;
  const walk here(c);
  // Of several lanes with the handle the newest stream's: the others' streams are gone.
  lane_state* newest = nullptr;
  for_each_lane(c, [&](lane_state& l) {
    if (l.device != &d || l.pool != pool || l.base.stream != stream || l.base.retired.load(std::memory_order_acquire)) {
      return;
    }
    if (l.named_here() == nullptr) return;
    if (newest == nullptr || l.base.stream_id > newest->base.stream_id) newest = &l;
  });
  if (newest != nullptr) return newest;
  static constinit std::atomic<std::uint64_t> unnamed{unnamed_streams};
  return find_or_make_lane(c, d, stream, unnamed.fetch_add(1, std::memory_order_relaxed), pool);
}

void unlist_lane(core& c, lane_state& l) noexcept {
  const std::lock_guard lock(c.lanes_mutex);
  std::atomic<lane_state*>* at = &c.table[bucket_of(*l.device, l.base.stream_id, l.pool)];
  while (lane_state* here = at->load(std::memory_order_relaxed)) {
    if (here == &l) {
      at->store(l.next.load(std::memory_order_relaxed), std::memory_order_release);
      return;
    }
    at = &here->next;
  }
}

void end_lane(lane_state& l) noexcept {
  cache::forget_caches(l.number());
  cache::set_captured(l.number(), false);
  l.pool->drop();
  l.pool = nullptr;
  l.device = nullptr;
  l.base.device = nullptr;
  l.base.heap->allocations.store(0, std::memory_order_relaxed);
  l.base.heap->taken_peak.store(0, std::memory_order_relaxed);
  release_lane(l);
}

void end_if_empty(core& c, lane_state& l) noexcept {
  const vm::lane& b = l.base;
  const auto busy = [](const std::atomic<std::uint64_t>& n) { return n.load(std::memory_order_acquire) != 0; };
  if (!b.retired.load(std::memory_order_acquire) || busy(b.memory.address_bytes) || busy(b.pending_blocks) ||
      busy(b.outbox.waiting) || b.heap->taken() != 0) {
    return;
  }
  // Two threads that find it empty: one of them ends it.
  core* alive = &c;
  if (!l.core.compare_exchange_strong(alive, nullptr, std::memory_order_seq_cst)) return;
  if (!vm::release_lane(l.base)) {
    l.core.store(&c, std::memory_order_release);
    return;
  }
  const std::lock_guard lock(c.limbo_mutex);
  try {
    c.limbo.push_back(&l);
  } catch (const std::bad_alloc&) {
    // The number stays unused.
  }
}

void drain_limbo(core& c) noexcept {
  const std::lock_guard lock(c.limbo_mutex);
  if (c.walkers.load(std::memory_order_seq_cst) != 0) return;
  for (lane_state* l : c.limbo) end_lane(*l);
  c.limbo.clear();
}

std::uint64_t gather(lane_state& l) noexcept {
  const cache::taken t = cache::take_caches(l.number());
  l.base.heap->empty_bins();
  l.base.heap->release_free_spans();
  return t.bytes;
}

}  // namespace weir::coordinator
