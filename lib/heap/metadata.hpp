#pragma once
// Host memory of the heap's records: reserved lazily committed stretches of zeroes, never malloc'ed, never moved.

#include <cstddef>
#include <cstdint>

namespace weir::heap {

/// Reserves `bytes` of zeroed host addresses, committed by the first touch. Null if the system refuses.
/// `wipe_on_fork` pages read as zero in a forked child.
void* reserve_metadata(std::size_t bytes, bool wipe_on_fork = false) noexcept;

/// Gives the pages' content back: they read as zero again. The addresses stay.
void clear_metadata(void* start, std::size_t bytes) noexcept;

/// Bytes of the stretch that are really in memory (page granular).
std::size_t resident_metadata(const void* start, std::size_t bytes) noexcept;

}  // namespace weir::heap
