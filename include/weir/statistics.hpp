#pragma once
// Counters of a service. Taking them stops nobody; at quiet points they are exact, and then
//   reserved = live + cached + pending + free_pages + slack + retiring          (contract C8).

#include <cstdint>
#include <string>
#include <vector>

#include "weir/export.hpp"

namespace weir {

/// Calls of one kind that Weir made to the driver.
struct driver_call_count {
  std::string name;  ///< the driver's own name, "cuMemMap"
  std::uint64_t calls = 0;
  double seconds = 0;  ///< 0 where only counted (calls of well under a microsecond)
};

/// Bytes unless said otherwise.
struct device_statistics {
  int device = 0;
  std::uint64_t asked = 0;       ///< asked for in live blocks, each rounded up by at most 1 byte or 1/1024 of the block
                                 ///< (blocks of 256 B count whole)
  std::uint64_t live = 0;        ///< in live blocks
  std::uint64_t live_peak = 0;   ///< highest live seen; may miss up to what the thread caches hold
  std::uint64_t cached = 0;      ///< free blocks in thread caches, bins and spans
  std::uint64_t pending = 0;     ///< freed, not yet reusable in their lane's order
  std::uint64_t stranded = 0;    ///< part of pending: freed on streams that vanished without `retire`
  std::uint64_t free_pages = 0;  ///< mapped, in no span and no run
  std::uint64_t slack = 0;       ///< tails of spans, page rounding of runs is part of live
  std::uint64_t retiring = 0;    ///< chunks on their way back to the driver
  std::uint64_t reserved = 0;    ///< physical handles held
  std::uint64_t reserved_peak = 0;
  std::uint64_t addresses = 0;      ///< device addresses reserved
  std::uint64_t metadata = 0;       ///< host memory that the heap's records of this device really use
  std::uint64_t allocations = 0;    ///< count, since the start
  std::uint64_t frees = 0;          ///< count, since the start
  std::uint64_t out_of_memory = 0;  ///< requests that failed
  std::uint64_t growths = 0;        ///< times the heap grew
  std::uint64_t lanes = 0;          ///< lanes in use
};

struct statistics {
  std::vector<device_statistics> devices;
  std::vector<driver_call_count> driver_calls;  ///< over all devices, kinds that were called at least once
  std::uint64_t misuses = 0;                    ///< faults reported through on_misuse
  std::uint64_t threads = 0;                    ///< thread caches in use

  [[nodiscard]] WEIR_API device_statistics total() const;
  [[nodiscard]] WEIR_API std::uint64_t total_driver_calls() const;
  [[nodiscard]] WEIR_API double driver_seconds() const;
};

}  // namespace weir
