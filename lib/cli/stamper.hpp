#pragma once
// Runs stamping kernels: host functions on simulated devices, one small kernel on GPUs.

#include <cstddef>
#include <memory>

#include "cli/rig.hpp"
#include "cli/stamp.hpp"

namespace weir::cli {

class stamper {
 public:
  virtual ~stamper() = default;

  /// Host memory that the kernels of every device reach, zeroed. Lives as long as the stamper.
  [[nodiscard]] virtual void* shared_memory(std::size_t bytes) = 0;

  /// Queues the orders on the stream: `orders` and `result` are shared memory and stay as they are until the stream has
  /// passed. The device must be the thread's current one. Throws `fault_error`.
  virtual void launch(int device, stream_t stream, const stamp_order* orders, unsigned count, stamp_result* result) = 0;
};

/// The one for the rig's devices. It must go before the rig. Throws `fault_error`.
[[nodiscard]] std::unique_ptr<stamper> make_stamper(rig& r);

/// For `make_stamper`.
[[nodiscard]] std::unique_ptr<stamper> make_simulated_stamper(rig& r);
[[nodiscard]] std::unique_ptr<stamper> make_cuda_stamper(rig& r);

}  // namespace weir::cli
