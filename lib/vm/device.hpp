#pragma once
// One device of one service: its context, what it may hold and holds, and what its lanes share.

#include <atomic>
#include <cstdint>

#include "weir/service.hpp"

#include "driver/api.hpp"
#include "driver/counters.hpp"
#include "driver/guards.hpp"
#include "heap/tagged_stack.hpp"
#include "vm/event_pool.hpp"
#include "vm/lane_list.hpp"
#include "vm/maintenance_path.hpp"
#include "vm/settings.hpp"

namespace weir::vm {

class device {
 public:
  /// Asks what the device is; makes no context. Throws weir::error: no such device, no VMM, a granularity that Weir's
  /// strides do not fit.
  device(const driver::table& functions, int ordinal, const settings& s);
  /// Destroys the events and releases the primary context, unless the driver is gone.
  ~device();
  device(const device&) = delete;
  device& operator=(const device&) = delete;

  [[nodiscard]] int ordinal() const noexcept { return ordinal_; }
  [[nodiscard]] const driver::api& api() const noexcept { return api_; }
  [[nodiscard]] driver::call_counters& counters() noexcept { return counters_; }
  [[nodiscard]] const settings& options() const noexcept { return settings_; }

  /// Retains the primary context at the first need; never makes it current.
  CUresult ensure_context() noexcept;
  /// Null before ensure_context.
  [[nodiscard]] CUcontext context() const noexcept { return context_.load(std::memory_order_acquire); }

  [[nodiscard]] std::uint64_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::uint64_t granularity() const noexcept { return granularity_; }
  /// Throws weir::error.
  [[nodiscard]] device_info describe() const;

  // --- bytes of physical handles ---------------------------------------------------------------------------------

  /// Adds to what is held, if limit and capacity allow it all.
  bool charge(std::uint64_t bytes) noexcept;
  void uncharge(std::uint64_t bytes) noexcept { reserved_.fetch_sub(bytes, std::memory_order_relaxed); }
  /// A look, no promise.
  [[nodiscard]] bool affords(std::uint64_t bytes) const noexcept;
  [[nodiscard]] std::uint64_t reserved() const noexcept { return reserved_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t reserved_peak() const noexcept { return reserved_peak_.load(std::memory_order_relaxed); }
  std::atomic<std::uint64_t> limit;  // 0: none

  // --- physical handles ------------------------------------------------------------------------------------------

  /// cuMemCreate: pinned memory of this device, exportable and for RDMA where that is supported.
  CUresult create(CUmemGenericAllocationHandle& out, std::uint64_t bytes) noexcept;
  /// Devices that may use this one's memory, one bit an ordinal (the first 64): every mapping gets them all.
  std::atomic<std::uint64_t> access_set;
  /// cuMemSetAccess for the whole access set.
  CUresult set_access(std::uint64_t address, std::uint64_t bytes) noexcept;

  // --- state -----------------------------------------------------------------------------------------------------

  /// Passes a result on; one that only a reset explains makes the device lost.
  CUresult note(CUresult result) noexcept;
  std::atomic<bool> lost{false};  // no more driver calls
  [[nodiscard]] CUresult lost_error() const noexcept { return lost_error_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool trims_held() const noexcept {
    return settings_.trim_holds != nullptr && settings_.trim_holds->load(std::memory_order_acquire) != 0;
  }

  event_pool events;
  maintenance_path path;
  lane_list lanes;
  std::atomic<int> announced_captures{0};
  std::atomic<bool> capture_seen{false};   // a capture that nobody announced: no context fence any more
  std::atomic<std::uint64_t> retiring{0};  // bytes of chunks on their way back, over all lanes

  // Pending blocks that wait for recorded uses only; swept from one stack to the other.
  heap::tagged_stack<> used[2];
  std::atomic<std::uint32_t> used_sweep{0};
  std::atomic<std::uint64_t> used_waiting{0};
  // Uses recorded on streams of this device, numbered; see use_records.hpp.
  std::atomic<std::uint64_t> use_clock{1};
  std::atomic<std::uint64_t> uses_reached{0};
  std::atomic<std::uint64_t> uses{0};  // records that exist

 private:
  [[nodiscard]] CUmemAllocationProp properties() const noexcept;
  [[nodiscard]] int attribute(CUdevice_attribute which) const noexcept;

  driver::call_counters counters_;
  driver::api api_;
  const int ordinal_;
  const settings settings_;
  CUdevice handle_ = 0;
  std::uint64_t capacity_ = 0;
  std::uint64_t granularity_ = 0;
  bool rdma_ = false;
  std::atomic<bool> exportable_{false};
  std::atomic<CUcontext> context_{nullptr};
  std::atomic<std::uint64_t> reserved_{0};
  std::atomic<std::uint64_t> reserved_peak_{0};
  std::atomic<CUresult> lost_error_{CUDA_SUCCESS};
};

/// The device's context current and the thread's capture mode relaxed, for a scope: what every driver call of vm needs.
class driver_scope {
 public:
  explicit driver_scope(const device& d) : mode_(d.api()), context_(d.api(), d.context()) {}
  [[nodiscard]] CUresult result() const noexcept {
    return mode_.result() != CUDA_SUCCESS ? mode_.result() : context_.result();
  }

 private:
  driver::relaxed_capture mode_;
  driver::context_guard context_;
};

}  // namespace weir::vm
