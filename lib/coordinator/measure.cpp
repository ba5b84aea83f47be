#include "coordinator/measure.hpp"

#include "cache/thread_cache.hpp"
#include "coordinator/lane_directory.hpp"
#include "heap/metadata.hpp"
#include "vm/pending.hpp"
#include "vm/trim.hpp"

namespace weir::coordinator {

namespace {

void raise(std::atomic<std::uint64_t>& peak, std::uint64_t to) noexcept {
  std::uint64_t seen = peak.load(std::memory_order_relaxed);
  while (seen < to && !peak.compare_exchange_weak(seen, to, std::memory_order_relaxed)) {
  }
}

}  // namespace

device_statistics measure(device_state& d) noexcept {
  const walk here(d.owner);
  device_statistics s;
  s.device = d.memory.ordinal();
  std::uint64_t live_blocks = 0;
  for_each_lane(d.owner, [&](lane_state& l) {
    if (l.device != &d) return;
    ++s.lanes;
    const heap::lane_counts h = l.base.heap->count();
    s.live += h.large + h.live_small;
    s.asked += h.large + h.live_small - h.large_waste - h.small_waste;
    s.free_pages += h.free_pages;
    s.slack += h.slack;
    s.cached += h.in_bins + h.free_in_spans;
    s.allocations += l.base.heap->allocations.load(std::memory_order_relaxed);
    s.metadata += l.base.heap->metadata_bytes();
    s.addresses += l.base.memory.address_bytes.load(std::memory_order_relaxed);
    live_blocks += h.live_blocks;
    cache::for_each_cache(l.number(), [&](const cache::lane_cache& c) {
      s.cached += c.cached_bytes();
      s.allocations += c.allocation_count();
      // A cache of a lane that had this number before is not this lane's cost.
      if (c.room_bytes() != 0) s.metadata += heap::resident_metadata(&c, sizeof(c));
    });
  });
  const vm::pending_counts p = vm::pending(d.memory);
  s.pending = p.bytes;
  s.stranded = p.stranded;
  s.retiring = vm::retiring_bytes(d.memory);
  s.reserved = d.memory.reserved();
  s.reserved_peak = d.memory.reserved_peak();
  s.frees = s.allocations - live_blocks;
  s.out_of_memory = d.out_of_memory.load(std::memory_order_relaxed);
  s.growths = d.growths.load(std::memory_order_relaxed);
  raise(d.live_peak, s.live);
  s.live_peak = d.live_peak.load(std::memory_order_relaxed);
  return s;
}

std::uint64_t used_by_others(device_state& d) noexcept {
  if (d.memory.lost.load(std::memory_order_acquire) || d.memory.ensure_context() != CUDA_SUCCESS) return 0;
  const vm::driver_scope scope(d.memory);
  std::size_t free_bytes = 0;
  std::size_t total = 0;
  if (scope.result() != CUDA_SUCCESS || d.memory.api().cuMemGetInfo(&free_bytes, &total) != CUDA_SUCCESS) return 0;
  const std::uint64_t used = total - free_bytes;
  const std::uint64_t ours = d.memory.reserved();
  return used > ours ? used - ours : 0;
}

void note_live_peak(device_state& d) noexcept {
  const walk here(d.owner);
  std::uint64_t out = 0;
  for_each_lane(d.owner, [&](lane_state& l) {
    if (l.device == &d) out += l.base.heap->taken();
  });
  raise(d.live_peak, out);
}

}  // namespace weir::coordinator
