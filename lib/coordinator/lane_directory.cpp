#include "coordinator/lane_directory.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <mutex>
#include <new>
#include <vector>

#include "cache/thread_cache.hpp"

namespace weir {

const vm::lane* lane_state::named_here() const noexcept {
  if (base.per_thread_default && creator != ::syscall(SYS_gettid)) return nullptr;
  return &base;
}

namespace coordinator {

namespace {

struct directory {
  std::mutex mutex;
  std::vector<lane_state*> ended;  // may still have handles
  std::atomic<std::uint32_t> made{0};
  std::array<std::atomic<lane_state*>, cache::most_lanes> lanes{};  // index = number; 0 is no lane
};

directory& all() noexcept {
  // Never destroyed: statics may free after main.
  alignas(directory) static std::byte storage[sizeof(directory)];
  static directory* d = ::new (static_cast<void*>(storage)) directory;
  return *d;
}

// At load, so that nobody meets the guard of a function-local static on the way to memory.
[[maybe_unused]] directory& made_early = all();

}  // namespace

lane_state* acquire_lane() noexcept {
  directory& d = all();
  const std::lock_guard lock(d.mutex);
  for (std::size_t i = d.ended.size(); i-- > 0;) {
    lane_state* l = d.ended[i];
    if (l->base.handles.load(std::memory_order_acquire) != 0) continue;
    d.ended.erase(d.ended.begin() + static_cast<std::ptrdiff_t>(i));
    return l;
  }
  const std::uint32_t number = d.made.load(std::memory_order_relaxed) + 1;
  if (number >= cache::most_lanes) return nullptr;
  heap::lane_heap* h = heap::lane_heap::make(number);
  auto* l = h == nullptr ? nullptr : new (std::nothrow) lane_state;
  if (l == nullptr) return nullptr;
  l->base.heap = h;
  h->owner = l;
  d.lanes[number].store(l, std::memory_order_relaxed);
  d.made.store(number, std::memory_order_release);  // pairs with lanes_made
  return l;
}

void release_lane(lane_state& l) noexcept {
  directory& d = all();
  const std::lock_guard lock(d.mutex);
  l.core.store(nullptr, std::memory_order_release);
  try {
    d.ended.push_back(&l);
  } catch (const std::bad_alloc&) {
    // The record stays unused.
  }
}

std::uint32_t lanes_made() noexcept { return all().made.load(std::memory_order_acquire); }

lane_state& lane_at(std::uint32_t number) noexcept { return *all().lanes[number].load(std::memory_order_relaxed); }

}  // namespace coordinator

}  // namespace weir
