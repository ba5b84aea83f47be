#pragma once
// What a command works on: real devices or a simulated machine, the driver's table to reach them by, and a service.

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "weir/config.hpp"
#include "weir/service.hpp"
#include "weir/simulation.hpp"

#include "driver/table.hpp"

namespace weir::cli {

struct rig_options {
  weir::config config = {};      ///< `driver` picks the backend; simulated devices are made as it says
  int devices = 0;               ///< how many the command uses, 0: as many as there are
  bool simulated_costs = false;  ///< count what the calls of simulated devices would take on a GPU...
  double simulated_sleep = 0;    ///< ...and sleep for this share of it
};

/// Owns the machine, the service and the streams. Thread safe but for construction, `close_service` and destruction.
class rig {
 public:
  /// Throws `usage_error` where the backend or the number of devices cannot be had, `weir::error` from the service.
  explicit rig(const rig_options& options);
  rig(const rig&) = delete;
  rig& operator=(const rig&) = delete;
  ~rig();

  [[nodiscard]] bool simulated() const noexcept { return machine_ != nullptr; }
  /// Why the devices are simulated although nobody asked for it; "" otherwise.
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }
  [[nodiscard]] int devices() const noexcept { return devices_; }
  [[nodiscard]] int driver_version() const;  ///< 13000: CUDA 13.0
  [[nodiscard]] weir::service& service() noexcept { return *service_; }
  [[nodiscard]] sim::machine* machine() const noexcept { return machine_.get(); }
  [[nodiscard]] const driver::table& driver() const noexcept { return *driver_; }

  /// Throws `fault_error` that names call, result and device, unless `result` is success.
  void must(CUresult result, const char* call, int device) const;

  /// Makes the device's primary context the calling thread's current one.
  void use(int device);

  /// A new non-blocking stream, destroyed by `close_streams`.
  [[nodiscard]] stream_t make_stream(int device);
  void synchronize();  ///< waits for all streams made here
  void close_streams();

  /// Ends the service; what is left on the devices then is nobody's but ours.
  void close_service() { service_.reset(); }

 private:
  void open_driver(const rig_options& options);

  std::shared_ptr<sim::machine> machine_;
  const driver::table* driver_ = nullptr;
  std::string reason_;
  int devices_ = 0;
  std::mutex mutex_;
  std::vector<CUcontext> contexts_;  // null until first used
  struct stream_record {
    int device;
    stream_t stream;
  };
  std::vector<stream_record> streams_;
  std::unique_ptr<weir::service> service_;
};

}  // namespace weir::cli
