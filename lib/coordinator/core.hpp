#pragma once
// The inside of a service, as the slow paths see it.

#include <array>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "weir/config.hpp"

#include "coordinator/hooks.hpp"
#include "coordinator/lane_state.hpp"
#include "vm/device.hpp"

namespace weir::sim {
class machine;
}

namespace weir::coordinator {

/// An announced capture: whose pool the capturing streams of the device use.
struct open_capture {
  const void* key = nullptr;
  long thread = 0;
  pool_state* pool = nullptr;
};

struct device_state {
  device_state(core& c, const driver::table& functions, int ordinal, const vm::settings& s)
      : owner(c), memory(functions, ordinal, s) {}

  core& owner;
  vm::device memory;
  std::atomic<std::uint64_t> out_of_memory{0};  // failed requests
  std::atomic<std::uint64_t> growths{0};
  std::atomic<std::uint64_t> live_peak{0};
  std::mutex captures_mutex;
  std::vector<open_capture> captures;
};

struct core {
  explicit core(const config& c) : options(c) {}

  const config options;
  std::shared_ptr<sim::machine> machine;  // null: the real driver
  const driver::table* functions = nullptr;
  hooks told;
  std::atomic<int> trim_holds{0};
  std::vector<std::unique_ptr<device_state>> devices;

  pool_state* default_pool = nullptr;
  std::mutex pools_mutex;
  std::vector<pool_state*> pools;

  // Lanes by stream identity and pool: chains that are read without a lock. A reader that a change led astray finds
  // nothing, and looks again under the mutex.
  static constexpr std::size_t buckets = 4096;
  std::array<std::atomic<lane_state*>, buckets> table{};
  std::mutex lanes_mutex;

  // Retired lanes that are empty, unreachable and not yet anybody else's: somebody may still be walking over the lanes.
  std::atomic<std::uint32_t> walkers{0};
  std::mutex limbo_mutex;
  std::vector<lane_state*> limbo;

  // The maintenance thread.
  std::mutex maintenance_mutex;
  std::condition_variable maintenance_wakes;
  std::thread maintenance_thread;
  std::atomic<bool> maintenance_started{false};
  std::mutex maintenance_round;  // held by a round: service::check looks between two
  bool maintenance_ends = false;

  std::atomic<bool> ending{false};  // the process or the service ends: no new work
};

/// Held while walking over the lanes of a service or a device: those that end meanwhile are not used again before it is
/// over. Sequentially consistent with drain_limbo: who finds no other walker after a lane became unreachable knows that
/// nobody still looks at it.
class walk {
 public:
  explicit walk(core& c) noexcept : core_(c) { core_.walkers.fetch_add(1, std::memory_order_seq_cst); }
  ~walk() { core_.walkers.fetch_sub(1, std::memory_order_seq_cst); }
  walk(const walk&) = delete;
  walk& operator=(const walk&) = delete;

 private:
  core& core_;
};

}  // namespace weir::coordinator
