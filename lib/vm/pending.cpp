#include "vm/pending.hpp"

#include <algorithm>
#include <array>
#include <thread>

#include "vm/pending_nodes.hpp"
#include "vm/streams.hpp"
#include "vm/use_records.hpp"
#include "vm/use_sweep.hpp"

namespace weir::vm {

namespace {

constinit pending_pool pool;

// Most blocks that one call of collect looks at: it is called again.
constexpr std::uint32_t most_blocks = 4096;

void raise(std::atomic<std::uint64_t>& to, std::uint64_t value) noexcept {
  std::uint64_t seen = to.load(std::memory_order_relaxed);
  while (seen < value && !to.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

void wait_for_uses(device& d, std::uint32_t index) noexcept {
  d.used_waiting.fetch_add(1, std::memory_order_relaxed);
  d.used[(d.used_sweep.load(std::memory_order_relaxed) + 1) & 1].push(index, pool.link());
}

bool push(lane& freed_in, std::uint64_t address, bool used) noexcept {
  heap::block_place at;
  if (!heap::lane_heap::find(address, at) || at.base != address) return false;
  lane* owner = lane_of(*at.lane);
  const bool own = owner == &freed_in;
  if (!own && !freed_in.device->lanes.add(freed_in)) return false;
  const std::uint32_t index = pool.take(freed_in.heap->number());
  if (index == pending_pool::none) return false;

  pending_node& n = pool[index];
  n.uses = used ? take_uses(address) : no_use;
  n.address = address;
  n.bytes = at.bytes;
  n.owner = owner;
  owner->pending_bytes.fetch_add(at.bytes, std::memory_order_relaxed);
  owner->pending_blocks.fetch_add(1, std::memory_order_relaxed);
  if (own) {
    wait_for_uses(*owner->device, index);
    return true;
  }
  const std::uint64_t epoch = freed_in.order.epoch();
  n.epoch.store(epoch, std::memory_order_relaxed);
  outbox::box& box = freed_in.outbox.of[epoch % outbox::boxes];
  raise(box.epoch, epoch);
  box.bytes.fetch_add(at.bytes, std::memory_order_relaxed);
  freed_in.outbox.waiting.fetch_add(1, std::memory_order_relaxed);
  box.nodes.push(index, pool.link());
  freed_in.order.want(epoch);
  return true;
}

/// The block's waiting is over: it may be used in its own lane's order. Returns its bytes.
std::uint64_t go_home(std::uint32_t index) noexcept {
  const pending_node& n = pool[index];
  const std::uint64_t bytes = n.bytes;
  lane* owner = n.owner;
  heap::block_place at;
  if (heap::lane_heap::find(n.address, at) && at.base == n.address) {
    if (at.cls == heap::class_count) {
      at.lane->free_run(*at.in, n.address);
    } else {
      at.in->states[heap::granule_in_slot(n.address)].store(heap::code_of(at.cls), std::memory_order_relaxed);
      at.lane->give_block(*at.in, n.address);
    }
  }
  owner->pending_bytes.fetch_sub(bytes, std::memory_order_relaxed);
  owner->pending_blocks.fetch_sub(1, std::memory_order_relaxed);
  pool.give(index, owner->heap->number());
  return bytes;
}

/// Takes a node out of the box if it is on top and its epoch was reached; none otherwise.
std::uint32_t pop_reached(const fence_ring& order, outbox::box& box) noexcept {
  const std::uint32_t top = box.nodes.top();
  // The look at a node that may be another's by now only saves a pop.
  if (top == pending_pool::none || !order.reached(pool[top].epoch.load(std::memory_order_relaxed))) {
    return pending_pool::none;
  }
  const std::uint32_t index = box.nodes.pop(pool.link());
  if (index == pending_pool::none || order.reached(pool[index].epoch.load(std::memory_order_relaxed))) return index;
  box.nodes.push(index, pool.link());
  return pending_pool::none;
}

std::uint64_t drain(lane& l, std::uint32_t& budget) noexcept {
  std::uint64_t freed = 0;
  for (outbox::box& box : l.outbox.of) {
    while (budget != 0) {
      const std::uint32_t index = pop_reached(l.order, box);
      if (index == pending_pool::none) break;
      --budget;
      box.bytes.fetch_sub(pool[index].bytes, std::memory_order_relaxed);
      l.outbox.waiting.fetch_sub(1, std::memory_order_relaxed);
      if (pool[index].uses != no_use) {
        wait_for_uses(*pool[index].owner->device, index);
      } else {
        freed += go_home(index);
      }
    }
  }
  return freed;
}

/// Blocks that wait for recorded uses only. What is not ready moves to the other stack, so that it hides nothing.
std::uint64_t drain_used(device& d, std::uint32_t& budget) noexcept {
  std::uint64_t freed = 0;
  use_sweep sweep(d);
  bool flipped = false;
  while (budget != 0 && d.used_waiting.load(std::memory_order_relaxed) != 0) {
    // A few at a time: a thread stopped here holds no more.
    std::array<std::uint32_t, 64> taken;
    std::array<std::uint32_t, 64> chains;
    std::uint32_t count = 0;
    std::uint32_t now = d.used_sweep.load(std::memory_order_relaxed);
    while (count < taken.size() && budget != 0) {
      const std::uint32_t index = d.used[now & 1].pop(pool.link());
      if (index == pending_pool::none) break;
      --budget;
      chains[count] = pool[index].uses;
      taken[count++] = index;
    }
    if (count == 0) {
      if (flipped) break;  // each was looked at
      d.used_sweep.compare_exchange_strong(now, now + 1, std::memory_order_relaxed);
      flipped = true;
      continue;
    }
    sweep.learn({chains.data(), count});
    for (std::uint32_t i = 0; i < count; ++i) {
      pending_node& n = pool[taken[i]];
      n.uses = sweep.end_reached(n.uses);
      if (n.uses != no_use) {
        d.used[(now + 1) & 1].push(taken[i], pool.link());
        continue;
      }
      d.used_waiting.fetch_sub(1, std::memory_order_relaxed);
      freed += go_home(taken[i]);
    }
  }
  return freed;
}

std::uint64_t collect(device& d, const lane* inside, bool pressure) noexcept {
  if (d.lost.load(std::memory_order_acquire) || d.context() == nullptr) return 0;
  bool any = d.used_waiting.load(std::memory_order_relaxed) != 0;
  const auto waits = [](const lane& l) {
    return l.outbox.waiting.load(std::memory_order_relaxed) != 0 || l.order.in_flight();
  };
  d.lanes.each([&](const lane& l) { any = any || waits(l); });
  if (!any) return 0;
  const driver_scope scope(d);
  if (d.note(scope.result()) != CUDA_SUCCESS) return 0;

  std::uint64_t freed = 0;
  std::uint32_t budget = most_blocks;
  d.lanes.each([&](lane& l) {
    if (!waits(l) || d.lost.load(std::memory_order_relaxed)) return;
    CUresult error = CUDA_SUCCESS;
    if (l.outbox.waiting.load(std::memory_order_relaxed) != 0) seal(l, inside, pressure, error);
    poll(l);
    freed += drain(l, budget);
  });
  return freed + drain_used(d, budget);
}

}  // namespace

pending_pool& pending_nodes() noexcept { return pool; }

bool push_pending(lane& freed_in, std::uint64_t block_address) noexcept { return push(freed_in, block_address, false); }
bool push_used(lane& freed_in, std::uint64_t block_address) noexcept { return push(freed_in, block_address, true); }

std::uint64_t collect(device& d, const lane* inside) noexcept { return collect(d, inside, false); }

std::uint64_t wait_pending(device& d, const lane* inside, std::uint64_t bytes,
                           std::chrono::steady_clock::time_point deadline) noexcept {
  using namespace std::chrono_literals;
  std::chrono::nanoseconds pause = 20us;
  std::uint64_t freed = 0;
  for (;;) {
    freed += collect(d, inside, true);
    const auto now = std::chrono::steady_clock::now();
    if (freed >= bytes || now >= deadline || d.lost.load(std::memory_order_acquire) || pending(d).blocks == 0) {
      return freed;
    }
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(pause, deadline - now));
    pause = std::min<std::chrono::nanoseconds>(pause * 2, 1ms);
  }
}

pending_counts pending(const device& d) noexcept {
  pending_counts sum;
  d.lanes.each([&](const lane& l) {
    sum.bytes += l.pending_bytes.load(std::memory_order_relaxed);
    sum.blocks += l.pending_blocks.load(std::memory_order_relaxed);
    if (l.may_touch()) return;
    for (const outbox::box& box : l.outbox.of) {
      if (!l.order.sealed(box.epoch.load(std::memory_order_relaxed))) {
        sum.stranded += box.bytes.load(std::memory_order_relaxed);
      }
    }
  });
  return sum;
}

void forget_pending(device& d) noexcept {
  const auto forget = [](std::uint32_t index) {
    pending_node& n = pool[index];
    for (std::uint32_t u = n.uses; u != no_use;) {
      const std::uint32_t next = use(u).next.load(std::memory_order_relaxed);
      end_use(u);
      u = next;
    }
    n.owner->pending_bytes.fetch_sub(n.bytes, std::memory_order_relaxed);
    n.owner->pending_blocks.fetch_sub(1, std::memory_order_relaxed);
    pool.give(index, index);
  };
  d.lanes.each([&](lane& l) {
    for (outbox::box& box : l.outbox.of) {
      for (std::uint32_t i = 0; (i = box.nodes.pop(pool.link())) != pending_pool::none;) {
        box.bytes.fetch_sub(pool[i].bytes, std::memory_order_relaxed);
        l.outbox.waiting.fetch_sub(1, std::memory_order_relaxed);
        forget(i);
      }
    }
  });
  for (auto& list : d.used) {
    for (std::uint32_t i = 0; (i = list.pop(pool.link())) != pending_pool::none;) {
      d.used_waiting.fetch_sub(1, std::memory_order_relaxed);
      forget(i);
    }
  }
}

}  // namespace weir::vm
