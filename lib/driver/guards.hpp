#pragma once
// Scopes that leave the calling thread as they found it: its current context and its capture mode (C7).

#include "driver/api.hpp"

namespace weir::driver {

/// Makes `wanted` the current context for a scope. Costs one cuCtxGetCurrent where it is current already, a push and a
/// pop otherwise. `result()` says whether it worked; if not, nothing is restored because nothing was changed.
class context_guard {
 public:
  context_guard(const api& driver, CUcontext wanted) : driver_(driver) {
    CUcontext current = nullptr;
    result_ = driver_.cuCtxGetCurrent(&current);
    if (result_ != CUDA_SUCCESS || current == wanted) return;
    result_ = driver_.cuCtxPushCurrent(wanted);
    pushed_ = result_ == CUDA_SUCCESS;
  }
  ~context_guard() {
    CUcontext popped = nullptr;
    if (pushed_) driver_.cuCtxPopCurrent(&popped);
  }
  context_guard(const context_guard&) = delete;
  context_guard& operator=(const context_guard&) = delete;

  [[nodiscard]] CUresult result() const noexcept { return result_; }

 private:
  api driver_;
  CUresult result_ = CUDA_SUCCESS;
  bool pushed_ = false;
};

/// Puts the thread's capture mode to relaxed for a scope: what Weir does then is legal while anybody captures.
class relaxed_capture {
 public:
  explicit relaxed_capture(const api& driver) : driver_(driver) {
    result_ = driver_.cuThreadExchangeStreamCaptureMode(&mode_);
  }
  ~relaxed_capture() {
    if (result_ == CUDA_SUCCESS) driver_.cuThreadExchangeStreamCaptureMode(&mode_);
  }
  relaxed_capture(const relaxed_capture&) = delete;
  relaxed_capture& operator=(const relaxed_capture&) = delete;

  [[nodiscard]] CUresult result() const noexcept { return result_; }

 private:
  api driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
  CUresult result_;
};

}  // namespace weir::driver
