#pragma once
// From any address to what Weir keeps of it: one process-wide table, an entry for each 4 GiB of addresses (C6). It is
// never unmapped; an entry is cleared before the driver gets the addresses back, and what it led to is type-stable.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "heap/state.hpp"
#include "heap/units.hpp"

namespace weir::heap {

class lane_heap;
template <template <class> class Atom>
struct span;

/// What one slot (4 GiB) of a lane keeps. Lives inside its lane.
struct slot {
  lane_heap* lane = nullptr;
  std::uint64_t base = 0;                         // device address of its first page
  std::uint32_t first_page = 0;                   // the same in the lane's page numbers
  std::uint32_t piece = 0;                        // the lane's slots with equal numbers are one reservation
  atomic_state* states = nullptr;                 // one a granule
  std::atomic<std::uint64_t>* records = nullptr;  // run_record, one a page
  span<std::atomic>* spans = nullptr;             // one a page, at a span's first page
};

struct range_entry {
  std::atomic<atomic_state*> states;  // null: not ours
  std::atomic<slot*> where;
  std::atomic<std::uint32_t> lane;  // its number, for the thread caches' tables
};

inline constexpr std::uint32_t range_count = 1u << 16;  // 48-bit addresses

extern range_entry range_table[range_count];

inline std::uint32_t granule_in_slot(std::uint64_t address) noexcept {
  return static_cast<std::uint32_t>(address) >> granule_shift;
}

/// The slot of an address, or null. Constant time, no lock.
inline slot* find_slot(std::uint64_t address) noexcept {
  const std::uint64_t index = address >> slot_shift;
  if (index >= range_count) return nullptr;
  return range_table[index].where.load(std::memory_order_acquire);  // pairs with the release in publish
}

/// Makes the slot findable. REQUIRES: its base is a multiple of 4 GiB below 2^48 and no entry is there.
void publish_slot(slot& s, std::uint32_t lane_number) noexcept;
void withdraw_slot(const slot& s) noexcept;

}  // namespace weir::heap
