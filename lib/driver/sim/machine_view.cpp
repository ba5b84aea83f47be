// How kernels and copies reach memory: checks first, then the shadow.

#include <algorithm>
#include <cstdio>

#include "driver/sim/machine_state.hpp"

namespace weir::sim {
namespace {

std::string range_text(std::uint64_t at, std::uint64_t bytes) {
  char text[64];
  std::snprintf(text, sizeof text, "0x%llx (%llu bytes)", static_cast<unsigned long long>(at),
                static_cast<unsigned long long>(bytes));
  return text;
}

// Why the device may not touch the mapping, or null.
const char* refusal(const machine_state& machine, const mapping& m, int device, access kind, bool any_owner) {
  if (m.memory->lost.load(std::memory_order_acquire)) return "was lost in a device reset";
  const int owner = m.memory->home->owner();
  auto may = [&](int who) {
    if (m.plain) {
      const auto& peers = machine.devices[static_cast<std::size_t>(who)]->context.peers;
      return who == owner || ((peers.load(std::memory_order_acquire) >> owner) & 1U) != 0;
    }
    const std::uint64_t bits = kind == access::read ? m.readable : m.writable;
    return ((bits >> who) & 1U) != 0;
  };
  if (may(device)) return nullptr;
  // A copy engine reaches memory that its owner can reach, without peer access.
  if (any_owner && owner >= 0 && may(owner)) return nullptr;
  return kind == access::read ? "is not readable by the device" : "is not writable by the device";
}

}  // namespace

bool machine_state::knows(std::uint64_t at) const {
  return addresses.find(at) != nullptr || pinned.find(at, 1).has_value();
}

void* machine_state::view(int device, std::uint64_t at, std::uint64_t bytes, access kind, bool any_owner) {
  running_kernel* kernel = this_thread().kernel;
  if (kernel != nullptr && kernel->machine != this) kernel = nullptr;
  auto fail = [&](const char* why) {
    std::string text = (kernel != nullptr ? "kernel on device " : "view for device ") + std::to_string(device) + ": " +
                       range_text(at, bytes) + " " + why;
    faults.report(fault_kind::illegal_access, text, device, kernel != nullptr ? kernel->stream_id : 0);
    throw illegal_access(text);
  };
  if (device < 0 || static_cast<std::size_t>(device) >= devices.size()) fail("asked for a device that does not exist");
  const std::shared_ptr<reservation> range = addresses.find(at);
  if (range == nullptr) {
    if (!pinned.find(at, std::max<std::uint64_t>(bytes, 1))) fail("is no device memory and no pinned host memory");
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(at));
  }
  const char* why = nullptr;
  {
    const std::lock_guard lock(range->mutex);
    const auto covering = range->cover(at, std::max<std::uint64_t>(bytes, 1));
    if (covering.empty()) why = "is not mapped";
    for (const auto& m : covering) {
      if (why == nullptr) why = refusal(*this, *m, device, kind, any_owner);
    }
    if (why == nullptr) {
      for (const auto& m : covering) {
        range->show(*m);
        if (kernel == nullptr) continue;
        auto& pins = kernel->pins;
        if (std::any_of(pins.begin(), pins.end(), [&](const auto& p) { return p.what == m; })) continue;
        ++m->pins;
        pins.push_back({range, m});
      }
      return range->shadow_of(at);
    }
  }
  fail(why);
  return nullptr;
}

bool machine_state::can_view(int device, std::uint64_t at, std::uint64_t bytes, access kind) {
  if (device < 0 || static_cast<std::size_t>(device) >= devices.size()) return false;
  const std::shared_ptr<reservation> range = addresses.find(at);
  if (range == nullptr) return pinned.find(at, std::max<std::uint64_t>(bytes, 1)).has_value();
  const std::lock_guard lock(range->mutex);
  const auto covering = range->cover(at, std::max<std::uint64_t>(bytes, 1));
  return !covering.empty() && std::all_of(covering.begin(), covering.end(), [&](const auto& m) {
    return refusal(*this, *m, device, kind, false) == nullptr;
  });
}

void machine_state::unpin(running_kernel& kernel) {
  for (const running_kernel::pin& p : kernel.pins) {
    const std::lock_guard lock(p.range->mutex);
    if (--p.what->pins == 0 && p.what->unmapped) p.range->hide(*p.what);
  }
  kernel.pins.clear();
}

void machine_state::run(const kernel& work, stream_core& on) {
  thread_state& thread = this_thread();
  running_kernel scope;
  scope.machine = this;
  scope.device = work.device;
  scope.stream_id = on.id();
  running_kernel* outer = thread.kernel;
  thread.kernel = &scope;
  CUresult error = CUDA_SUCCESS;
  try {
    work.function();
  } catch (const illegal_access&) {
    error = CUDA_ERROR_ILLEGAL_ADDRESS;  // recorded where it was found
  } catch (const std::exception& e) {
    faults.report(fault_kind::kernel_failed, "kernel on device " + std::to_string(work.device) + " threw: " + e.what(),
                  work.device, on.id());
    error = CUDA_ERROR_LAUNCH_FAILED;
  }
  thread.kernel = outer;
  unpin(scope);
  if (error != CUDA_SUCCESS && config.sticky_faults) kill(work.device, error);
}

}  // namespace weir::sim
