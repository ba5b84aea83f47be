// Captures that are open, and what they forbid.

#include <algorithm>

#include "driver/sim/machine_state.hpp"

namespace weir::sim {

std::shared_ptr<capture> machine_state::capture_of(stream_core& core) {
  if (!core.in_capture.load(std::memory_order_acquire)) return nullptr;
  const std::lock_guard lock(core.capture_mutex);
  return core.capturing;
}

std::vector<std::shared_ptr<capture>> machine_state::captures_on(int device, bool blocking_only) {
  std::vector<std::shared_ptr<capture>> found;
  const std::lock_guard lock(captures_mutex);
  std::copy_if(captures.begin(), captures.end(), std::back_inserter(found),
               [&](const auto& c) { return c->touches(device, blocking_only); });
  return found;
}

// A thread in relaxed mode may do anything. Otherwise its own captures that are not relaxed forbid unsafe calls, and in
// global mode so do other threads' global captures.
CUresult machine_state::refuse_unsafe() {
  if (open_captures.load(std::memory_order_acquire) == 0) return CUDA_SUCCESS;
  const CUstreamCaptureMode mode = me().mode;
  if (mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  const std::uint64_t self = this_thread().number;
  bool refused = false;
  const std::lock_guard lock(captures_mutex);
  for (const auto& c : captures) {
    const bool own = c->thread() == self && c->mode() != CU_STREAM_CAPTURE_MODE_RELAXED;
    const bool others = mode == CU_STREAM_CAPTURE_MODE_GLOBAL && c->mode() == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!own && !others) continue;
    c->invalidate();
    refused = true;
  }
  return refused ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

}  // namespace weir::sim
