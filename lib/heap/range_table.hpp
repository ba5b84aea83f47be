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

/// What one slot (4 GiB) of a lane keeps. Lives inside its lane, for good: who looks an address up while its piece goes
/// still has a whole slot before him.
struct slot {
  lane_heap* lane = nullptr;                      // never changes
  std::uint32_t first_page = 0;                   // its number in the lane; never changes
  std::uint32_t piece = 0;                        // the lane's slots with equal numbers are one reservation
  std::uint32_t piece_slots = 0;                  // at a piece's first slot: how many it has
  std::atomic<std::uint64_t> base{0};             // device address of its first page
  atomic_state* states = nullptr;                 // one a granule
  std::atomic<std::uint64_t>* records = nullptr;  // run_record, one a page
  span<std::atomic>* spans = nullptr;             // one a page, at a span's first page
  std::atomic<bool> made{false};  // the three are set, and stay: pairs add_piece with whoever looks around
};

inline constexpr std::uint32_t range_count = 1u << 16;  // 48-bit addresses

// Columns apart, so that each is one load away on the fast path. Read `range_lane` first (acquire).
[[gnu::visibility("hidden")]] extern std::atomic<std::uint32_t> range_lane[range_count];    // its number; 0: not ours
[[gnu::visibility("hidden")]] extern std::atomic<atomic_state*> range_states[range_count];  // good where lane is not 0
[[gnu::visibility("hidden")]] extern std::atomic<slot*> range_slot[range_count];            // null: not ours

inline std::uint32_t granule_in_slot(std::uint64_t address) noexcept {
  return static_cast<std::uint32_t>(address) >> granule_shift;
}

/// The state byte of the address's granule. REQUIRES: the address is ours.
inline atomic_state* state_of(std::uint64_t address) noexcept {
  return range_states[address >> slot_shift].load(std::memory_order_relaxed) + granule_in_slot(address);
}

/// The slot of an address, or null. Constant time, no lock.
inline slot* find_slot(std::uint64_t address) noexcept {
  const std::uint64_t index = address >> slot_shift;
  if (index >= range_count) return nullptr;
  return range_slot[index].load(std::memory_order_acquire);  // pairs with the release in publish
}

/// Makes the slot findable. REQUIRES: lane_number is not 0, its base is a multiple of 4 GiB below 2^48 and no entry is
/// there.
void publish_slot(slot& s, std::uint32_t lane_number) noexcept;
void withdraw_slot(const slot& s) noexcept;

}  // namespace weir::heap
