#include "cache/taking.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

namespace weir::cache {

namespace {

long membarrier(int command) noexcept { return ::syscall(SYS_membarrier, command, 0, 0); }

bool register_barrier() noexcept {
  if (WEIR_CACHE_SEQ_CST != 0) return true;
  return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

// At load: no function-local static on the way to freeing memory.
const bool barrier_works = register_barrier();

// Every thread of the process has passed a full barrier after this; false: the system refuses.
bool pass_barrier() noexcept {
  if (WEIR_CACHE_SEQ_CST != 0) return true;
  return barrier_works && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0;
}

constexpr std::size_t round_size = 64;  // caches asked for with one barrier

struct asked_cache {
  lane_cache* cache;
  std::uint64_t ask;
};

// `alone`: the caller knows that no thread is in a call of the lane, so nothing needs the barrier.
template <class Wanted, class Empty>
taken take_some(std::uint32_t lane_number, bool alone, Wanted&& wanted, Empty&& empty) noexcept {
  taken sum;
  std::array<asked_cache, round_size> round{};
  std::size_t count = 0;
  const auto finish_round = [&] {
    if (count == 0) return;
    const bool passed = pass_barrier() || alone;
    for (std::size_t i = 0; i < count; ++i) {
      lane_cache& c = *round[i].cache;
      if (!passed || !c.owner.take(round[i].ask)) {
        ++sum.refused;
        continue;
      }
      sum.bytes += empty(c);
      c.hand_over_counts();
      c.forget_room();
      ++sum.caches;
      if (c.owner.finish()) detail::recycle(c);
    }
    count = 0;
  };
  for_each_cache(lane_number, [&](lane_cache& c) {
    if (!wanted(c)) return;
    const std::uint64_t ask = c.owner.ask();
    if (ask == 0) return;
    round[count++] = {&c, ask};
    if (count == round_size) finish_round();
  });
  finish_round();
  return sum;
}

}  // namespace

taken take_caches(std::uint32_t lane_number) noexcept {
  return take_some(
      lane_number, false, [](lane_cache& c) { return c.cached_bytes() != 0; }, [](lane_cache& c) { return c.drain(); });
}

taken take_idle_caches(std::uint32_t lane_number) noexcept {
  return take_some(
      lane_number, false,
      [](lane_cache& c) {
        const std::uint64_t work = c.work();
        return c.seen_work.exchange(work, std::memory_order_relaxed) == work && c.cached_bytes() != 0;
      },
      [](lane_cache& c) { return c.drain(); });
}

void forget_caches(std::uint32_t lane_number) noexcept {
  take_some(
      lane_number, true, [](lane_cache&) { return true; },
      [](lane_cache& c) {
        for (std::uint32_t k = 0; k < heap::class_count; ++k) c.bin_of(k).set_count(0);
        return std::uint64_t{0};
      });
}

bool can_take() noexcept { return WEIR_CACHE_SEQ_CST != 0 || barrier_works; }

}  // namespace weir::cache
