#include "vm/streams.hpp"

namespace weir::vm {

namespace {

bool context_fence_allowed(const device& d) noexcept {
  return d.options().context_fence && d.announced_captures.load(std::memory_order_acquire) == 0 &&
         !d.capture_seen.load(std::memory_order_acquire) && d.api().functions().cuCtxRecordEvent != nullptr;
}

bool touchable(const lane& l, const lane* inside) noexcept { return inside == &l || l.may_touch(); }

/// REQUIRES: a driver_scope.
bool capturing_now(device& d, CUstream s) noexcept {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult asked = d.note(d.api().cuStreamIsCapturing(s, &status));
  // For the legacy stream an error says that another stream's capture forbids its use.
  if (asked == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_NONE) return false;
  if (d.announced_captures.load(std::memory_order_acquire) == 0) d.capture_seen.store(true, std::memory_order_release);
  return true;
}

/// REQUIRES: a driver_scope, and that the stream of the handle is not capturing. The handle of a per-thread default
/// stream means the calling thread's own.
bool is_here(lane& l) noexcept {
  if (!l.per_thread_default) return true;
  unsigned long long id = 0;
  return l.device->api().cuStreamGetId(l.stream, &id) == CUDA_SUCCESS && id == l.stream_id;
}

}  // namespace

std::uint64_t stream_id(device& d, CUstream s, CUresult& error) noexcept {
  // On every raw-stream allocation, so as little as possible: not counted, no capture mode, and the context only where
  // the answer depends on it. A stream that is capturing is asked nothing else: the question would spoil the capture.
  error = d.context() != nullptr ? CUDA_SUCCESS : d.ensure_context();
  if (error != CUDA_SUCCESS) return 0;
  const driver::table& call = d.api().functions();
  const auto ask = [&]() -> std::uint64_t {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    unsigned long long id = 0;
    error = call.cuStreamIsCapturing(s, &status);
    // The legacy stream answers so while another stream captures: it may not be touched, but it is what it is.
    if (error == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT || status != CU_STREAM_CAPTURE_STATUS_NONE) {
      error = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (error == CUDA_SUCCESS) error = call.cuStreamGetId(s, &id);
    return id;
  };
  const bool a_default_stream = reinterpret_cast<std::uintptr_t>(s) <= 2;
  std::uint64_t id = 0;
  if (!a_default_stream) id = ask();
  if (a_default_stream || error == CUDA_ERROR_INVALID_CONTEXT) {
    const driver::context_guard here(d.api(), d.context());
    error = here.result();
    if (error == CUDA_SUCCESS) id = ask();
  }
  return d.note(error) == CUDA_SUCCESS ? id : 0;
}

bool capturing(device& d, CUstream s) noexcept {
  if (d.ensure_context() != CUDA_SUCCESS) return false;
  const driver_scope scope(d);
  return scope.result() == CUDA_SUCCESS && capturing_now(d, s);
}

bool can_seal(const lane& l, const lane* inside, bool pressure) noexcept {
  return touchable(l, inside) || (pressure && context_fence_allowed(*l.device));
}

bool seal(lane& l, const lane* inside, bool pressure, CUresult& error) noexcept {
  device& d = *l.device;
  error = CUDA_SUCCESS;
  if (!l.order.needs_seal()) return true;
  fence_ring::outcome outcome = fence_ring::outcome::failed;
  const bool may = touchable(l, inside);
  if (may && capturing_now(d, l.stream)) return false;
  if (may && is_here(l)) {
    outcome = l.order.seal(d.events, error, [&](CUevent e) { return d.api().cuEventRecord(e, l.stream); });
  } else if (pressure && context_fence_allowed(d)) {
    // Covers even work of streams that are gone.
    outcome = l.order.seal(d.events, error, [&](CUevent e) { return d.api().cuCtxRecordEvent(d.context(), e); });
  }
  d.note(error);
  return outcome == fence_ring::outcome::sealed;
}

void poll(lane& l) noexcept {
  if (!l.order.in_flight()) return;
  device& d = *l.device;
  l.order.poll(d.events, [&](CUevent e) { return d.note(d.api().cuEventQuery(e)); });
}

}  // namespace weir::vm
