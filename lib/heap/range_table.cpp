#include "heap/range_table.hpp"

namespace weir::heap {

constinit std::atomic<std::uint32_t> range_lane[range_count] = {};
constinit std::atomic<atomic_state*> range_states[range_count] = {};
constinit std::atomic<slot*> range_slot[range_count] = {};

void publish_slot(slot& s, std::uint32_t lane_number) noexcept {
  const std::uint64_t index = s.base.load(std::memory_order_relaxed) >> slot_shift;
  range_states[index].store(s.states, std::memory_order_relaxed);
  range_slot[index].store(&s, std::memory_order_release);
  // Last: the fast path looks at the number first. Release: pairs with its acquire.
  range_lane[index].store(lane_number, std::memory_order_release);
}

void withdraw_slot(const slot& s) noexcept {
  const std::uint64_t index = s.base.load(std::memory_order_relaxed) >> slot_shift;
  range_lane[index].store(0, std::memory_order_release);
  range_slot[index].store(nullptr, std::memory_order_release);
  // `states` stays: the bytes are type-stable, and a late reader finds zeroes.
}

}  // namespace weir::heap
