#include "vm/trim.hpp"

#include "vm/mapping.hpp"
#include "vm/streams.hpp"

namespace weir::vm {

namespace {

constexpr std::uint32_t per = heap::pages_per_stride;
constexpr std::uint64_t bytes_of(std::uint32_t strides) { return std::uint64_t{strides} << heap::stride_shift; }

bool idle(const device& d) noexcept { return d.lost.load(std::memory_order_acquire) || d.trims_held(); }

bool take(chunk& c, const chunk_word& was) noexcept {
  chunk_word then = was;
  then.state = chunk_state::taken;
  return c.change(was, then);
}

/// A chunk whose pages are all free leaves the heap. False: it stays as it is.
bool retire(lane& l, std::uint32_t at, chunk& c, const chunk_word& w) noexcept {
  const std::uint32_t pages = w.strides * per;
  if (w.state != chunk_state::mapped || w.pins != 0 || l.heap->pages.count_free(at * per, pages) != pages) return false;
  if (!take(c, w)) return false;
  if (!l.heap->pages.claim_at(at * per, pages)) {
    c.set(w);
    return false;
  }
  // Whatever was freed into these pages was freed before this stamp.
  const std::uint64_t epoch = l.order.epoch();
  c.epoch.store(epoch, std::memory_order_relaxed);
  l.order.want(epoch);
  l.memory.retiring_bytes.fetch_add(bytes_of(w.strides), std::memory_order_relaxed);
  l.device->retiring.fetch_add(bytes_of(w.strides), std::memory_order_relaxed);
  c.set({chunk_state::retiring, false, 0, w.strides, w.tag});
  return true;
}

/// Retiring chunks go back to the heap: all of the lane's, or those that no fence covers.
std::uint64_t reclaim(lane& l, bool unsealed_only) noexcept {
  std::uint64_t bytes = 0;
  l.memory.each_chunk([&](std::uint32_t at, chunk& c, const chunk_word& w) {
    // Epoch 0: the driver refused to unmap it; it may be half way out.
    const std::uint64_t epoch = c.epoch.load(std::memory_order_relaxed);
    if (w.state != chunk_state::retiring || w.bare || epoch == 0 || (unsealed_only && l.order.sealed(epoch)) ||
        !take(c, w)) {
      return true;
    }
    const std::uint64_t here = bytes_of(w.strides);
    l.memory.retiring_bytes.fetch_sub(here, std::memory_order_relaxed);
    l.device->retiring.fetch_sub(here, std::memory_order_relaxed);
    c.set({chunk_state::mapped, false, 0, w.strides, w.tag});
    l.heap->pages.release(at * per, w.strides * per);
    bytes += here;
    return true;
  });
  return bytes;
}

/// Ends the lane's retiring chunks whose fence is reached.
std::uint64_t finish(lane& l) noexcept {
  std::uint64_t released = 0;
  poll(l);
  l.memory.each_chunk([&](std::uint32_t at, chunk& c, const chunk_word& w) {
    if (w.state != chunk_state::retiring || !l.order.reached(c.epoch.load(std::memory_order_relaxed))) return true;
    if (take(c, w) && end_chunk(l, at, w) == CUDA_SUCCESS) released += bytes_of(w.strides);
    return !idle(*l.device);
  });
  give_pieces_back(l);
  return released;
}

/// With nothing held from the driver, nothing shall be: events too.
void tidy(device& d) noexcept {
  if (d.reserved() != 0 || d.events.alive() == 0) return;
  d.lanes.each([](lane& l) { poll(l); });
  d.events.clear();
}

}  // namespace

std::uint64_t retire_free_chunks(lane& l, std::uint64_t keep, const lane* inside) noexcept {
  device& d = *l.device;
  if (idle(d) || !l.memory.prepared() || d.context() == nullptr) return 0;
  const maintenance_path::pass pass = d.path.enter(d.options().growth_patience);
  const driver_scope scope(d);
  if (d.note(scope.result()) != CUDA_SUCCESS) return 0;

  bool any = false;
  if (can_seal(l, inside, true)) {
    l.memory.each_chunk_down([&](std::uint32_t at, chunk& c, const chunk_word& w) {
      if (d.reserved() <= keep + d.retiring.load(std::memory_order_relaxed)) return false;
      any = retire(l, at, c, w) || any;
      return true;
    });
  }
  if (any) {
    CUresult error = CUDA_SUCCESS;
    if (!seal(l, inside, true, error)) reclaim(l, true);
  }
  const std::uint64_t released = finish(l);
  tidy(d);
  return released;
}

std::uint64_t finish_retiring_inside(device& d) noexcept {
  if (idle(d)) return 0;
  std::uint64_t released = 0;
  if (d.retiring.load(std::memory_order_relaxed) != 0) {
    d.lanes.each([&](lane& l) {
      if (l.memory.retiring_bytes.load(std::memory_order_relaxed) != 0) released += finish(l);
    });
  }
  tidy(d);
  return released;
}

std::uint64_t finish_retiring(device& d) noexcept {
  if (idle(d) || d.context() == nullptr) return 0;
  if (d.retiring.load(std::memory_order_relaxed) == 0 && (d.reserved() != 0 || d.events.alive() == 0)) return 0;
  const maintenance_path::pass pass = d.path.enter(d.options().growth_patience);
  const driver_scope scope(d);
  if (d.note(scope.result()) != CUDA_SUCCESS) return 0;
  return finish_retiring_inside(d);
}

std::uint64_t reclaim_retiring(lane& l) noexcept {
  if (l.memory.retiring_bytes.load(std::memory_order_relaxed) == 0) return 0;
  return reclaim(l, false);
}

std::uint64_t retiring_bytes(const device& d) noexcept { return d.retiring.load(std::memory_order_relaxed); }

void quiesced(device& d) noexcept {
  if (d.context() == nullptr || d.lost.load(std::memory_order_acquire)) return;
  const driver_scope scope(d);
  if (d.note(scope.result()) != CUDA_SUCCESS) return;
  d.uses_reached.store(d.use_clock.load(std::memory_order_acquire), std::memory_order_release);
  d.lanes.each([&](lane& l) { l.order.all_reached(d.events); });
}

bool release_lane(lane& l) noexcept {
  const bool holds = l.memory.mapped_bytes.load(std::memory_order_acquire) != 0 ||
                     l.memory.address_bytes.load(std::memory_order_acquire) != 0 ||
                     l.pending_blocks.load(std::memory_order_acquire) != 0 ||
                     l.outbox.waiting.load(std::memory_order_acquire) != 0 || l.order.in_flight();
  if (!holds) l.device->lanes.remove(l);
  return !holds;
}

}  // namespace weir::vm
