#include "stopped/crowd.hpp"

#include <sys/mman.h>

#include <new>

namespace weir::test {

namespace {

// Eight times 4 GiB of granules, committed where they are touched.
constexpr std::size_t map_bytes = std::size_t{8} << 24;

std::size_t place_of(std::uint64_t address) noexcept { return (address >> 8) % map_bytes; }

std::uint64_t roll(std::uint64_t& state) noexcept {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

}  // namespace

bool crowd::ring::put(const block& b) noexcept {
  const std::uint32_t w = written.load(std::memory_order_relaxed);
  if (w - read.load(std::memory_order_acquire) == places) return false;
  blocks[w % places] = b;
  written.store(w + 1, std::memory_order_release);
  return true;
}

bool crowd::ring::get(block& b) noexcept {
  const std::uint32_t at = read.load(std::memory_order_relaxed);
  if (at == written.load(std::memory_order_acquire)) return false;
  b = blocks[at % places];
  read.store(at + 1, std::memory_order_release);
  return true;
}

crowd::crowd(pattern what, const std::array<weir::lane, most_threads>& lanes, unsigned threads)
    : what_(what), count_(threads) {
  void* map = ::mmap(nullptr, map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) throw std::bad_alloc();
  granules_ = static_cast<std::atomic<std::uint8_t>*>(map);
  for (unsigned i = 0; i < count_; ++i) {
    workers_[i].lane = lanes[i];
    workers_[i].dice = 0x9e3779b97f4a7c15u * (i + 1);
  }
  for (unsigned i = 0; i < count_; ++i) workers_[i].thread = std::thread([this, i] { run(i); });
}

crowd::~crowd() {
  ends_.store(true);
  for (unsigned i = 0; i < count_; ++i) workers_[i].thread.join();
  for (unsigned i = 0; i < count_; ++i) {
    for (block b; workers_[i].inbox.get(b);) give(workers_[i], b, true);
  }
  ::munmap(granules_, map_bytes);
}

void crowd::run(unsigned i) noexcept {
  worker& w = workers_[i];
  while (!ends_.load(std::memory_order_relaxed)) {
    one_step(w, i);
    w.done.store(w.done.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  for (block& b : w.held) {
    if (b.at != nullptr) give(w, b, false);
  }
}

std::size_t crowd::random_size(worker& w) const noexcept {
  const std::uint64_t r = roll(w.dice);
  const auto small = static_cast<std::size_t>(1 + r % 8192);
  const auto large = static_cast<std::size_t>((std::uint64_t{1} << 20) + 1 + (r >> 8) % (std::uint64_t{5} << 20));
  switch (what_) {
    case pattern::small:
      return small;
    case pattern::large:
      return large;
    case pattern::handoff:
      return r % 16 == 0 ? large : small;
    case pattern::mixed:
      break;
  }
  // Every magnitude as often as the next.
  const unsigned shift = static_cast<unsigned>(r >> 32) % 23;
  return static_cast<std::size_t>(1 + (r & ((std::uint64_t{1} << shift) - 1)));
}

void crowd::one_step(worker& w, unsigned i) noexcept {
  if (what_ == pattern::handoff) {
    block b = take(w, random_size(w));
    if (b.at != nullptr && !workers_[(i + 1) % count_].inbox.put(b)) give(w, b, false);
    if (block mine; w.inbox.get(mine)) give(w, mine, true);
    return;
  }
  // Large blocks in few places: what all hold stays well below what is warm.
  const std::size_t places = what_ == pattern::large ? 6 : w.held.size();
  block& b = w.held[roll(w.dice) % places];
  if (b.at != nullptr) {
    give(w, b, (roll(w.dice) & 1) != 0);
  } else {
    b = take(w, random_size(w));
  }
}

crowd::block crowd::take(worker& w, std::size_t bytes) noexcept {
  block b{w.lane.try_allocate(bytes), bytes};
  if (b.at == nullptr) {
    refused_.fetch_add(1);
  } else {
    mark(b, 0, 1);
  }
  return b;
}

// `anywhere`: by the free function, in the order of the block's own lane; which is the only right one for a block of
// another thread's lane.
void crowd::give(worker& w, block& b, bool anywhere) noexcept {
  mark(b, 1, 0);
  void* p = b.at;
  b.at = nullptr;
  if (anywhere) {
    weir::deallocate(p);
  } else {
    w.lane.deallocate(p);
  }
}

void crowd::mark(const block& b, std::uint8_t from, std::uint8_t to) noexcept {
  const auto first = reinterpret_cast<std::uint64_t>(b.at);
  const auto last = first + b.bytes - 1;
  // First, last and every 64 KiB: two live blocks that overlap meet in one of them, or in each other's first.
  for (std::uint64_t at = first; at <= last; at += std::uint64_t{1} << 16) {
    if (granules_[place_of(at)].exchange(to) != from) given_twice_.fetch_add(1);
  }
  if (place_of(last) != place_of(first) && ((last - first) >> 8) % 256 != 0) {
    if (granules_[place_of(last)].exchange(to) != from) given_twice_.fetch_add(1);
  }
}

}  // namespace weir::test
