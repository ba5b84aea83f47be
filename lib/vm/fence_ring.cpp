#include "vm/fence_ring.hpp"

namespace weir::vm {

fence_ring::place* fence_ring::take_free() noexcept {
  for (place& p : ring_) {
    std::uint32_t expected = vacant;
    if (p.state.load(std::memory_order_relaxed) == vacant &&
        p.state.compare_exchange_strong(expected, busy, std::memory_order_acquire, std::memory_order_relaxed)) {
      in_flight_.fetch_add(1, std::memory_order_relaxed);
      return &p;
    }
  }
  return nullptr;
}

fence_ring::place* fence_ring::take_oldest() noexcept {
  for (;;) {
    place* oldest = nullptr;
    for (place& p : ring_) {
      if (p.state.load(std::memory_order_acquire) != waiting) continue;
      if (oldest == nullptr ||
          p.epoch.load(std::memory_order_relaxed) < oldest->epoch.load(std::memory_order_relaxed)) {
        oldest = &p;
      }
    }
    if (oldest == nullptr) return nullptr;
    std::uint32_t expected = waiting;
    if (oldest->state.compare_exchange_strong(expected, busy, std::memory_order_acquire, std::memory_order_relaxed)) {
      return oldest;
    }
  }
}

void fence_ring::finish(place& p, event_pool& events) noexcept {
  raise(reached_, p.epoch.load(std::memory_order_relaxed));
  events.give(p.event);
  p.event = nullptr;
  in_flight_.fetch_sub(1, std::memory_order_relaxed);
  p.state.store(vacant, std::memory_order_release);
}

void fence_ring::all_reached(event_pool& events) noexcept {
  const std::uint64_t ended = epoch_.fetch_add(1, std::memory_order_seq_cst);
  raise(sealed_, ended);
  raise(reached_, ended);
  while (place* p = take_oldest()) finish(*p, events);
}

}  // namespace weir::vm
