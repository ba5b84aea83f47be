#include "coordinator/ladder.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "cache/miss.hpp"
#include "cache/taking.hpp"
#include "coordinator/lane_directory.hpp"
#include "coordinator/lanes.hpp"
#include "coordinator/maintenance.hpp"
#include "coordinator/measure.hpp"
#include "vm/growth.hpp"
#include "vm/pending.hpp"
#include "vm/trim.hpp"

namespace weir::coordinator {

namespace {
constexpr int callback_rounds = 8;
constexpr std::chrono::milliseconds ask_again{1};  // how long other threads are asked for their caches
}  // namespace

ladder::ladder(lane_state& l, std::size_t bytes, std::size_t alignment) noexcept
    : lane_(l), device_(*l.device), bytes_(bytes), alignment_(alignment), cls_(heap::class_count) {
  if (bytes <= max_small_bytes && alignment <= heap::page_bytes) cls_ = heap::class_of(bytes, alignment);
  if (cls_ < heap::class_count) {
    pages_ = heap::classes[cls_].pages;
  } else {
    pages_ = heap::pages_for(bytes);
    page_alignment_ = std::max(1u, static_cast<std::uint32_t>(alignment >> heap::page_shift));
  }
}

void* ladder::search(bool thorough) noexcept {
  heap::lane_heap& h = *lane_.base.heap;
  if (cls_ < heap::class_count) return cache::allocate_miss(h, cls_, bytes_, thorough);
  void* run = h.take_run(bytes_, alignment_, thorough);
  if (run != nullptr) h.allocations.fetch_add(1, std::memory_order_relaxed);
  return run;
}

void* ladder::grow() noexcept {
  driver_error_ = CUDA_SUCCESS;
  if (device_.memory.lost.load(std::memory_order_acquire)) {
    driver_error_ = device_.memory.lost_error();
    return nullptr;
  }
  const vm::growth_result r = vm::grow(lane_.base, pages_, page_alignment_);
  if (r.what == vm::growth::failed) driver_error_ = r.error;
  if (r.what != vm::growth::done) return nullptr;
  device_.growths.fetch_add(1, std::memory_order_relaxed);
  note_live_peak(device_);
  start_maintenance(device_.owner);
  heap::lane_heap& h = *lane_.base.heap;
  if (cls_ < heap::class_count) return cache::allocate_from(h, r.first_page, cls_, bytes_);
  h.allocations.fetch_add(1, std::memory_order_relaxed);
  return h.publish_run(r.first_page, pages_, bytes_);
}

void* ladder::search_and_grow() noexcept {
  if (void* block = search(true)) return block;
  return grow();
}

void ladder::collect() noexcept {
  // Blocks of this device may wait in the order of another one's streams.
  for (const auto& d : device_.owner.devices) {
    if (d->memory.context() == nullptr || d->memory.lost.load(std::memory_order_acquire)) continue;
    vm::collect(d->memory, d.get() == &device_ ? lane_.named_here() : nullptr);
  }
}

void* ladder::from_own_lane() noexcept {
  // Threads that are inside a call are asked, and hand in at their next one: ask again for a moment.
  const auto deadline = std::chrono::steady_clock::now() + ask_again;
  for (;;) {
    const cache::taken t = cache::take_caches(lane_.number());
    lane_.base.heap->empty_bins();
    lane_.base.heap->release_free_spans();
    if (void* block = search(true)) return block;
    if (t.refused == 0 || std::chrono::steady_clock::now() >= deadline) return nullptr;
    std::this_thread::yield();
  }
}

void* ladder::from_other_lanes() noexcept {
  vm::finish_retiring(device_.memory);
  if (void* block = search_and_grow()) return block;
  void* block = nullptr;
  for_each_lane(device_.owner, [&](lane_state& other) {
    if (block != nullptr || &other == &lane_ || other.device != &device_) return;
    gather(other);
    if (vm::retire_free_chunks(other.base, 0) == 0) return;
    block = search_and_grow();
  });
  if (block == nullptr && vm::finish_retiring(device_.memory) != 0) block = search_and_grow();
  return block;
}

void* ladder::from_pending() noexcept {
  const core& c = device_.owner;
  const auto deadline = std::chrono::steady_clock::now() + c.options.oom_wait;
  while (c.trim_holds.load(std::memory_order_acquire) == 0) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= deadline) return nullptr;
    const bool retiring = vm::retiring_bytes(device_.memory) != 0;
    if (vm::pending(device_.memory).bytes == 0 && !retiring) return nullptr;
    // In short steps: what comes back may be memory of other lanes, on its way through the driver.
    const auto step = std::min(deadline, now + std::chrono::milliseconds(5));
    collect();
    vm::wait_pending(device_.memory, lane_.named_here(), bytes_, step);
    vm::finish_retiring(device_.memory);
    if (void* block = from_own_lane()) return block;
    if (void* block = from_other_lanes()) return block;
    if (retiring && vm::pending(device_.memory).bytes == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return nullptr;
}

outcome ladder::climb(out_of_memory_report* report) noexcept {
  outcome out;
  if ((out.block = search(false)) != nullptr) return out;
  const walk here(device_.owner);

  // Before growing: what other streams have passed, and spans that are free as a whole.
  collect();
  lane_.base.heap->release_free_spans();
  if ((out.block = search(true)) != nullptr) return out;
  if ((out.block = grow()) != nullptr) return out;

  for (int round = 0;; ++round) {
    if (driver_error_ == CUDA_SUCCESS) {
      if ((out.block = from_own_lane()) != nullptr) return out;
      collect();
      if (vm::reclaim_retiring(lane_.base) != 0 && (out.block = search(true)) != nullptr) return out;
      if ((out.block = search_and_grow()) != nullptr) return out;
      if ((out.block = from_other_lanes()) != nullptr) return out;
    }
    if (driver_error_ != CUDA_SUCCESS) {
      out.why = errc::driver_error;
      out.driver = driver_error_;
      return out;
    }
    const auto* callback = device_.owner.told.out_of_memory.get();
    if (callback == nullptr || round >= callback_rounds) break;
    bool again = false;
    try {
      again = (*callback)(describe());
    } catch (...) {
      device_.owner.told.say(log_level::error, device_.memory.ordinal(), "the out-of-memory hook threw; ignored");
    }
    if (!again) break;
    if ((out.block = search_and_grow()) != nullptr) return out;
  }
  if ((out.block = from_pending()) != nullptr) return out;

  device_.out_of_memory.fetch_add(1, std::memory_order_relaxed);
  out.why = errc::out_of_memory;
  if (report != nullptr) *report = describe();
  return out;
}

out_of_memory_report ladder::describe() noexcept {
  const device_statistics s = measure(device_);
  out_of_memory_report r;
  r.asked = bytes_;
  r.device = device_.memory.ordinal();
  r.capacity = device_.memory.capacity();
  r.limit = device_.memory.limit.load(std::memory_order_relaxed);
  r.live = s.live;
  r.cached = s.cached;
  r.free_pages = s.free_pages;
  r.pending = s.pending;
  r.stranded = s.stranded;
  r.retiring = s.retiring;
  r.reserved = s.reserved;
  r.largest_free = std::uint64_t{lane_.base.heap->pages.longest_free()} << heap::page_shift;
  r.others = used_by_others(device_);
  return r;
}

}  // namespace weir::coordinator
