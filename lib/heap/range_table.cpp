#include "heap/range_table.hpp"

namespace weir::heap {

constinit range_entry range_table[range_count] = {};

void publish_slot(slot& s, std::uint32_t lane_number) noexcept {
  range_entry& e = range_table[s.base >> slot_shift];
  e.lane.store(lane_number, std::memory_order_relaxed);
  e.where.store(&s, std::memory_order_release);
  // Last: the fast path looks at the states first, and reads the number after it.
  e.states.store(s.states, std::memory_order_release);
}

void withdraw_slot(const slot& s) noexcept {
  range_entry& e = range_table[s.base >> slot_shift];
  e.states.store(nullptr, std::memory_order_release);
  e.where.store(nullptr, std::memory_order_release);
}

}  // namespace weir::heap
