#pragma once
// Many threads allocate, use and free blocks on many devices, and every block is checked.

#include <cstdint>
#include <string>

#include "cli/faults.hpp"
#include "cli/histogram.hpp"
#include "cli/rig.hpp"

namespace weir::cli {

enum class stress_pattern {
  mixed,    ///< each thread keeps some blocks live and replaces random ones
  pair,     ///< each block is freed right after it was allocated
  handoff,  ///< each block is freed by the next thread, in that thread's stream order
};

struct stress_options {
  int devices = 2;
  int threads = 4;
  double seconds = 5;
  stress_pattern pattern = stress_pattern::mixed;
  bool shared_streams = false;  ///< one stream a device for all threads, instead of one a device for each
  std::uint64_t seed = 1;
  std::uint64_t live = 256;      ///< blocks that each thread keeps live (mixed)
  std::uint64_t smallest = 256;  ///< bytes
  std::uint64_t largest = std::uint64_t{4} << 20;
  std::uint64_t rare = std::uint64_t{64} << 20;  ///< one block in 256 is of up to so many bytes; 0: none
  std::uint64_t stamp_every = 0;  ///< stamp and check the contents of one block in so many; 0: chosen by the pattern
};

struct stress_result {
  double seconds = 0;         ///< that the threads really worked
  std::uint64_t pairs = 0;    ///< blocks allocated and freed
  std::uint64_t stamped = 0;  ///< of these, those whose contents were checked
  std::uint64_t refused = 0;  ///< requests that found the device's memory full
  histogram latency;          ///< of allocate + free, a sample
  std::uint64_t peak_live = 0;
  std::uint64_t peak_reserved = 0;
};

/// Works on the first `devices` devices of the rig, ends its service and checks all that can be checked. Faults go to
/// `faults`; after the first one the threads stop.
[[nodiscard]] stress_result run_stress(const stress_options& options, rig& r, fault_list& faults);

}  // namespace weir::cli
