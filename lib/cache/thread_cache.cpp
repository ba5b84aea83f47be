#include "cache/thread_cache.hpp"

#include <pthread.h>

#include <algorithm>
#include <mutex>

#include "heap/metadata.hpp"
#include "heap/tagged_stack.hpp"

namespace weir::cache {

constinit thread_cache no_cache = {};
constinit thread_local thread_cache* current = &no_cache;
constinit std::atomic<std::uint64_t> thread_budget{std::uint64_t{128} << 20};

namespace {

constexpr std::uint32_t most_lane_caches = 1u << 16;
// A thread's exit destructors run at most four rounds (PTHREAD_DESTRUCTOR_ITERATIONS); what is freed in the last one
// goes without a cache.
constexpr int last_exit_round = 3;

constinit thread_local int exit_rounds = 0;

struct caches {
  thread_cache* threads = nullptr;
  lane_cache* lanes = nullptr;
  std::atomic<std::uint32_t> threads_made{0};
  std::atomic<std::uint32_t> lanes_made{0};
  std::atomic<std::uint32_t> threads_in_use{0};
  heap::tagged_stack<> orphans;
  heap::tagged_stack<> unused_lanes;
  std::atomic<std::uint8_t> captured[most_lanes] = {};
  std::atomic<const int*> alive{nullptr};  // a page that reads as zero in a forked child
  pthread_key_t key = 0;
  bool has_key = false;
};
constinit caches all;

auto thread_link() noexcept {
  return [](std::uint32_t i) -> std::atomic<std::uint32_t>& { return all.threads[i].next; };
}
auto lane_link() noexcept {
  return [](std::uint32_t i) -> std::atomic<std::uint32_t>& { return all.lanes[i].next; };
}

extern "C" void weir_thread_ends(void* value) {
  auto* t = static_cast<thread_cache*>(value);
  if (t != current || !usable_here()) return;
  current = &no_cache;
  ++exit_rounds;
  all.threads_in_use.fetch_sub(1, std::memory_order_relaxed);
  all.orphans.push(t->index, thread_link());
}

extern "C" void weir_forked_child() { current = &no_cache; }

// Early, so that the key is one of the first: only their values are stored without a malloc.
__attribute__((constructor)) void make_key() { all.has_key = pthread_key_create(&all.key, weir_thread_ends) == 0; }

// The index of something made for the first time; `most` when all are.
std::uint32_t make_one(std::atomic<std::uint32_t>& made, std::uint32_t most) noexcept {
  std::uint32_t seen = made.load(std::memory_order_relaxed);
  while (seen < most) {
    if (made.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel, std::memory_order_relaxed)) return seen;
  }
  return most;
}

}  // namespace

bool start_caches() noexcept {
  static constinit std::mutex once;
  const std::lock_guard lock(once);
  if (all.alive.load(std::memory_order_acquire) != nullptr) return usable_here();
  auto* threads = heap::reserve_metadata(sizeof(thread_cache) * most_threads);
  auto* lanes = heap::reserve_metadata(sizeof(lane_cache) * most_lane_caches);
  auto* alive = static_cast<int*>(heap::reserve_metadata(4096, true));
  if (threads == nullptr || lanes == nullptr || alive == nullptr || !all.has_key) return false;
  if (pthread_atfork(nullptr, nullptr, weir_forked_child) != 0) return false;
  all.threads = static_cast<thread_cache*>(threads);  // zeroed memory is a valid, empty cache
  all.lanes = static_cast<lane_cache*>(lanes);
  *alive = 1;
  all.alive.store(alive, std::memory_order_release);
  return true;
}

bool usable_here() noexcept {
  const int* alive = all.alive.load(std::memory_order_acquire);
  return alive != nullptr && *alive != 0;
}

thread_cache* attach_thread() noexcept {
  if (!usable_here() || exit_rounds >= last_exit_round) return nullptr;
  std::uint32_t index = all.orphans.pop(thread_link());
  if (index == heap::tagged_stack<>::none) {
    index = make_one(all.threads_made, most_threads);
    if (index == most_threads) return nullptr;
    all.threads[index].index = index;
  }
  thread_cache* t = &all.threads[index];
  if (pthread_setspecific(all.key, t) != 0) {
    all.orphans.push(index, thread_link());
    return nullptr;
  }
  all.threads_in_use.fetch_add(1, std::memory_order_relaxed);
  current = t;
  return t;
}

lane_cache* enter_lane(heap::lane_heap& lane) noexcept {
  thread_cache* t = current != &no_cache ? current : attach_thread();
  if (t == nullptr) return nullptr;
  std::atomic<lane_cache*>& place = t->lanes[lane.number()];
  if (lane_cache* c = place.load(std::memory_order_relaxed); c != nullptr) {
    if (c->owner.enter()) return c;
    bool asked = false;
    bool captured = false;
    if (c->owner.reclaim(asked, captured)) {
      if (asked) c->drain();  // somebody is short of memory: hand in
      return c;
    }
    // A taker is at work in it, and will recycle it.
    place.store(nullptr, std::memory_order_relaxed);
  }
  lane_cache* c = detail::take_lane_cache();
  if (c == nullptr) return nullptr;
  c->start(lane, *t, detail::captured(lane.number()));
  place.store(c, std::memory_order_seq_cst);
  t->lanes_end = std::max(t->lanes_end, lane.number() + 1);
  // An announcement between the two lines above may have missed it.
  if (detail::captured(lane.number())) c->owner.set_captured(true);
  c->owner.enter();
  return c;
}

std::uint32_t thread_count() noexcept { return all.threads_in_use.load(std::memory_order_relaxed); }

void set_captured(std::uint32_t lane_number, bool on) noexcept {
  all.captured[lane_number].store(on ? 1 : 0, std::memory_order_seq_cst);
  for_each_cache(lane_number, [on](lane_cache& c) { c.owner.set_captured(on); });
}

namespace detail {

thread_cache* thread_at(std::uint32_t index) noexcept { return &all.threads[index]; }
std::uint32_t threads_made() noexcept { return all.threads_made.load(std::memory_order_acquire); }

lane_cache* take_lane_cache() noexcept {
  std::uint32_t index = all.unused_lanes.pop(lane_link());
  if (index == heap::tagged_stack<>::none) {
    index = make_one(all.lanes_made, most_lane_caches);
    if (index == most_lane_caches) return nullptr;
    all.lanes[index].index = index;
  }
  return &all.lanes[index];
}

void recycle(lane_cache& c) noexcept {
  c.heap->allocations.fetch_add(c.allocation_count(), std::memory_order_relaxed);
  all.unused_lanes.push(c.index, lane_link());
}

bool captured(std::uint32_t lane_number) noexcept {
  return all.captured[lane_number].load(std::memory_order_seq_cst) != 0;
}

}  // namespace detail

}  // namespace weir::cache
