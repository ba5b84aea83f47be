// Driver calls: primary contexts and the calling thread's stack of them.

#include "driver/sim/machine_state.hpp"

namespace weir::sim {
namespace {

CUcontext handle_of(context_state* c) { return static_cast<CUcontext>(static_cast<void*>(c)); }

}  // namespace

CUresult machine_state::cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice device) {
  device_state* d = nullptr;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = device_at(device, d); result != CUDA_SUCCESS) return result;
  if (const int error = d->error.load()) return static_cast<CUresult>(error);
  context_state& c = d->context;
  const std::lock_guard lock(c.mutex);
  if (c.id.load() == 0) activate(c);
  ++c.references;
  *out = handle_of(&c);
  return CUDA_SUCCESS;
}

CUresult machine_state::cuDevicePrimaryCtxRelease(CUdevice device) {
  device_state* d = nullptr;
  if (const CUresult result = device_at(device, d); result != CUDA_SUCCESS) return result;
  {
    const std::lock_guard lock(d->context.mutex);
    if (d->context.references == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (--d->context.references > 0) return CUDA_SUCCESS;
  }
  deactivate(d->context, false);
  return CUDA_SUCCESS;
}

CUresult machine_state::cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  device_state* d = nullptr;
  if (const CUresult result = device_at(device, d); result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(d->context.mutex);
  if (flags != nullptr) *flags = d->context.flags;
  if (active != nullptr) *active = d->context.id.load() != 0 ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult machine_state::cuCtxGetCurrent(CUcontext* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const thread_view& view = me();
  *out = view.contexts.empty() ? nullptr : handle_of(view.contexts.back());
  return CUDA_SUCCESS;
}

CUresult machine_state::cuCtxSetCurrent(CUcontext handle) {
  context_state* c = handle == nullptr ? nullptr : find_context(handle);
  if (handle != nullptr && c == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (c != nullptr && c->id.load() == 0) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  thread_view& view = me();
  // Replaces the top; null takes it off.
  if (!view.contexts.empty()) view.contexts.pop_back();
  if (c != nullptr) view.contexts.push_back(c);
  return CUDA_SUCCESS;
}

CUresult machine_state::cuCtxPushCurrent(CUcontext handle) {
  context_state* c = find_context(handle);
  if (c == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (c->id.load() == 0) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  me().contexts.push_back(c);
  return CUDA_SUCCESS;
}

CUresult machine_state::cuCtxPopCurrent(CUcontext* out) {
  thread_view& view = me();
  if (view.contexts.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (out != nullptr) *out = handle_of(view.contexts.back());
  view.contexts.pop_back();
  return CUDA_SUCCESS;
}

CUresult machine_state::cuCtxGetDevice(CUdevice* device) {
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const int index = current_device();
  if (index < 0) return CUDA_ERROR_INVALID_CONTEXT;
  *device = index;
  return CUDA_SUCCESS;
}

CUresult machine_state::cuCtxGetId(CUcontext handle, unsigned long long* id) {
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  context_state* c = nullptr;
  if (handle == nullptr) {
    if (const CUresult result = current(c); result != CUDA_SUCCESS) return result;
  } else {
    c = find_context(handle);
    if (c == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (c->id.load() == 0) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  }
  *id = c->id.load();
  return CUDA_SUCCESS;
}

CUresult machine_state::cuCtxSynchronize() {
  context_state* c = nullptr;
  if (const CUresult result = current(c); result != CUDA_SUCCESS) return result;
  if (open_captures.load() != 0) {
    if (const CUresult result = refuse_unsafe(); result != CUDA_SUCCESS) return result;
    const auto broken = captures_on(c->device->index, false);
    for (const auto& open : broken) open->invalidate();
    if (!broken.empty()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return wait_for_device(*c->device);
}

CUresult machine_state::cuCtxRecordEvent(CUcontext handle, CUevent handle_of_event) {
  context_state* c = find_context(handle);
  if (c == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (c->id.load() == 0) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (const int error = c->device->error.load()) return static_cast<CUresult>(error);
  if (open_captures.load() != 0) {
    const auto broken = captures_on(c->device->index, false);
    for (const auto& open : broken) open->invalidate();
    if (!broken.empty()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  event_slot* e = events.find(handle_of_event);
  if (e == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  std::vector<point> points;
  for (const auto& core : cores_of(*c)) {  // destroyed streams that are busy are among them
    if (core->busy()) points.push_back(core->tail());
  }
  const std::lock_guard lock(e->mutex);
  if (!e->alive) return CUDA_ERROR_INVALID_HANDLE;
  if (e->context_id != c->id.load()) return CUDA_ERROR_INVALID_HANDLE;
  e->points = std::move(points);
  e->captured_in.reset();
  e->when.reset();
  return CUDA_SUCCESS;
}

CUresult machine_state::cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  context_state* own = nullptr;
  if (const CUresult result = current(own); result != CUDA_SUCCESS) return result;
  context_state* other = find_context(peer);
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (other == nullptr || other->id.load() == 0) return CUDA_ERROR_INVALID_CONTEXT;
  const int to = other->device->index;
  if (other == own || !peers(own->device->index, to)) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  const std::uint64_t bit = std::uint64_t{1} << to;
  return (own->peers.fetch_or(bit) & bit) != 0 ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED : CUDA_SUCCESS;
}

CUresult machine_state::cuCtxDisablePeerAccess(CUcontext peer) {
  context_state* own = nullptr;
  if (const CUresult result = current(own); result != CUDA_SUCCESS) return result;
  context_state* other = find_context(peer);
  if (other == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const std::uint64_t bit = std::uint64_t{1} << other->device->index;
  return (own->peers.fetch_and(~bit) & bit) != 0 ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

}  // namespace weir::sim
