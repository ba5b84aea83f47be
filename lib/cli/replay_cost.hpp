#pragma once
// Driver calls and time of a stretch of work, by the library's statistics and the simulated machine's table of costs.

#include <cstdint>
#include <map>
#include <string>

#include "cli/rig.hpp"

namespace weir::cli {

struct driver_cost {
  std::map<std::string, std::uint64_t> calls;
  double host_seconds = 0;  ///< that the calls really took
  double seconds = 0;       ///< the same, or on simulated devices what they would take on a GPU
};

class cost_meter {
 public:
  /// Starts here.
  explicit cost_meter(rig& r);

  /// Since the start.
  [[nodiscard]] driver_cost read() const;

 private:
  struct known {
    std::uint64_t calls = 0;
    double seconds = 0;
  };
  using known_calls = std::map<std::string, known>;
  static known_calls of_library(rig& r);
  static known_calls of_machine(rig& r);

  rig& rig_;
  known_calls library_;
  known_calls machine_;
};

}  // namespace weir::cli
