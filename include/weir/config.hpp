#pragma once
// Every option of a service. Each field is one line of the table in lib/service/config.cpp, which also gives its
// environment variable: WEIR_ and the field's name in capitals (thread_cache: WEIR_THREAD_CACHE).

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "weir/export.hpp"

namespace weir {

enum class backend { automatic, cuda, simulated };
enum class log_level { off, error, warning, info, debug };

/// Sizes in bytes; in the environment also with the suffixes K, M, G, T (powers of 1024). Times in milliseconds.
struct WEIR_API config {
  backend driver = backend::automatic;  ///< WEIR_DRIVER = auto | cuda | sim. auto: cuda where a device is found
  int simulated_devices = 2;            ///< how many devices a simulated machine gets
  std::uint64_t simulated_memory = std::uint64_t{4} << 30;  ///< memory of each simulated device
  std::uint64_t limit = 0;       ///< most physical memory that Weir holds on each device; 0: the device's own
  std::uint64_t chunk_size = 0;  ///< size of a physical handle; 0: chosen (about 10 MiB, larger for huge requests)
  std::uint64_t piece_size = 0;  ///< addresses reserved at a time for a lane; 0: the device's memory
  std::uint64_t thread_cache = std::uint64_t{128} << 20;  ///< most bytes that one thread caches over all lanes
  std::uint64_t lane_cache = std::uint64_t{32} << 20;     ///< most bytes in the bins of one lane
  std::chrono::milliseconds growth_patience{100};         ///< wait for the maintenance path before going on without it
  std::chrono::milliseconds oom_wait{1000};               ///< longest wait for pending frees before a request fails
  std::chrono::milliseconds idle_after{1000};             ///< a thread cache not used for so long may be drained
  bool maintenance = true;             ///< a background thread retires pending frees and drains idle caches
  bool hardened = false;               ///< tell two threads that free one block at the same instant apart (C10)
  bool context_fence = true;           ///< allow the context fence under pressure (design: "Between lanes")
  log_level log = log_level::warning;  ///< what reaches the default event sink, stderr

  /// Defaults overridden by the WEIR_ variables of the environment.
  /// Throws `error` (invalid_argument) that names the variable and its value; unknown WEIR_ variables are named too.
  static config from_environment();

  /// Sets one option by its field name ("thread_cache", "64M"). Throws `error` that names option and value.
  void set(const std::string& name, const std::string& value);

  /// Checks the fields against each other. Throws `error` (invalid_argument) that names the field.
  void check() const;

  /// One row of the table of options, for documentation and `weir info --config`.
  struct option {
    std::string name;         ///< the field
    std::string variable;     ///< the environment variable
    std::string value;        ///< the effective value, as `set` takes it
    std::string description;  ///< one line
  };
  [[nodiscard]] std::vector<option> options() const;
};

}  // namespace weir
