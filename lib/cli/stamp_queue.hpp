#pragma once
// Gathers stamping orders of one thread for one stream and launches them together, as one kernel.

#include <cstdint>
#include <vector>

#include "cli/stamper.hpp"

namespace weir::cli {

/// For one thread. All members throw `fault_error`: a wrong word found by an earlier launch, or a driver call that
/// failed. A block may be freed once an order that verifies it was flushed: the free comes later in stream order.
class stamp_queue {
 public:
  stamp_queue(rig& r, stamper& kernels, int device, stream_t stream);
  stamp_queue(const stamp_queue&) = delete;
  stamp_queue& operator=(const stamp_queue&) = delete;
  ~stamp_queue();

  void write(void* block, std::uint64_t bytes, std::uint64_t stamp) { add(block, bytes, stamp, stamp_order::write); }
  void verify(void* block, std::uint64_t bytes, std::uint64_t stamp) { add(block, bytes, stamp, stamp_order::verify); }

  /// Launches what was added. The device becomes the thread's current one.
  void flush();

  /// Makes later launches of this queue wait for all that the other one has launched.
  void wait_for(CUevent event);
  /// Behind the latest launch; null before the first. Recorded again by later launches.
  [[nodiscard]] CUevent last_launch() const noexcept { return last_; }

  /// Flushes, waits for all launches and looks at what they found.
  void finish();

  [[nodiscard]] stream_t stream() const noexcept { return stream_; }
  [[nodiscard]] int device() const noexcept { return device_; }

 private:
  static constexpr unsigned orders_a_launch = 32;
  static constexpr unsigned launches = 16;  // in flight at most

  struct slot {
    stamp_order* orders = nullptr;
    stamp_result* result = nullptr;
    CUevent done = nullptr;
    unsigned count = 0;
    bool in_flight = false;
  };

  void add(void* block, std::uint64_t bytes, std::uint64_t stamp, std::uint64_t todo);
  void reclaim(slot& s);

  rig& rig_;
  stamper& kernels_;
  int device_;
  stream_t stream_;
  std::vector<slot> slots_;
  unsigned current_ = 0;
  CUevent last_ = nullptr;
};

}  // namespace weir::cli
