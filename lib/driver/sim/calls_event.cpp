// Driver calls: events.

#include <algorithm>

#include "driver/sim/machine_state.hpp"

namespace weir::sim {
namespace {

CUevent handle_of(event_slot* e) { return static_cast<CUevent>(static_cast<void*>(e)); }

bool reached(const event_slot& e) {
  return std::all_of(e.points.begin(), e.points.end(), [](const point& p) { return p.reached(); });
}

// An event of the simulated driver, locked; null and a fault if the handle is dead.
event_slot* lock_event(machine_state& m, CUevent handle, std::unique_lock<std::mutex>& lock) {
  event_slot* e = m.events.find(handle);
  if (e != nullptr) {
    lock = std::unique_lock(e->mutex);
    if (e->alive) return e;
    lock.unlock();
  }
  char text[64];
  std::snprintf(text, sizeof text, "event %p was %s", static_cast<void*>(handle),
                e != nullptr ? "destroyed" : "never made");
  m.faults.report(fault_kind::dead_handle, text);
  return nullptr;
}

}  // namespace

CUresult machine_state::cuEventCreate(CUevent* out, unsigned flags) {
  constexpr unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING;
  context_state* c = nullptr;
  if (out == nullptr || (flags & ~known) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = current(c); result != CUDA_SUCCESS) return result;
  event_slot* e = events.take();
  if (e == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::lock_guard lock(e->mutex);
  e->alive = true;
  e->flags = flags;
  e->device = c->device->index;
  e->context_id = c->id.load();
  e->points.clear();
  e->when.reset();
  e->captured_in.reset();
  e->clock.clear();
  *out = handle_of(e);
  return CUDA_SUCCESS;
}

CUresult machine_state::cuEventDestroy(CUevent handle) {
  std::unique_lock<std::mutex> lock;
  event_slot* e = lock_event(*this, handle, lock);
  if (e == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  e->alive = false;
  std::vector<point> covered;
  covered.swap(e->points);
  e->when.reset();
  const std::shared_ptr<capture> captured = std::move(e->captured_in);
  lock.unlock();
  events.give_back(e);
  return CUDA_SUCCESS;
}

CUresult machine_state::cuEventRecord(CUevent handle, CUstream on) {
  stream_ref s;
  if (const CUresult result = resolve(on, s); result != CUDA_SUCCESS) return result;
  std::unique_lock<std::mutex> lock;
  event_slot* e = lock_event(*this, handle, lock);
  if (e == nullptr || e->device != s.device->index) return CUDA_ERROR_INVALID_HANDLE;
  if (open_captures.load(std::memory_order_acquire) != 0) {
    if (const auto c = capture_of(*s.core)) {
      if (!c->valid()) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
      e->captured_in = c;
      e->clock = c->clock_of(*s.core);
      e->points.clear();
      return CUDA_SUCCESS;
    }
    if (s.legacy) {
      const auto broken = captures_on(s.device->index, true);
      for (const auto& c : broken) c->invalidate();
      if (!broken.empty()) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
  }
  order_with_legacy(s);
  e->captured_in.reset();
  e->when.reset();
  if ((e->flags & CU_EVENT_DISABLE_TIMING) == 0) {
    e->when = std::make_shared<stamp>(0);
    s.core->add(e->when);
  }
  e->points.clear();
  if (point tail = s.core->tail(); !tail.reached()) e->points.push_back(std::move(tail));
  return CUDA_SUCCESS;
}

CUresult machine_state::cuEventQuery(CUevent handle) {
  if (const CUresult result = refuse_unsafe(); result != CUDA_SUCCESS) return result;
  std::unique_lock<std::mutex> lock;
  event_slot* e = lock_event(*this, handle, lock);
  if (e == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (const int error = devices[static_cast<std::size_t>(e->device)]->error.load()) return static_cast<CUresult>(error);
  if (e->captured_in != nullptr) {
    e->captured_in->invalidate();
    return CUDA_ERROR_CAPTURED_EVENT;
  }
  if (!reached(*e)) return CUDA_ERROR_NOT_READY;
  e->points.clear();
  return CUDA_SUCCESS;
}

CUresult machine_state::cuEventSynchronize(CUevent handle) {
  if (const CUresult result = refuse_unsafe(); result != CUDA_SUCCESS) return result;
  std::unique_lock<std::mutex> lock;
  event_slot* e = lock_event(*this, handle, lock);
  if (e == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (e->captured_in != nullptr) {
    e->captured_in->invalidate();
    return CUDA_ERROR_CAPTURED_EVENT;
  }
  const std::vector<point> covered = e->points;  // a record that comes meanwhile is another matter
  const device_state& d = *devices[static_cast<std::size_t>(e->device)];
  lock.unlock();
  for (const point& p : covered) p.core->wait_for(p.sequence);
  return static_cast<CUresult>(d.error.load(std::memory_order_acquire));
}

CUresult machine_state::cuEventElapsedTime(float* milliseconds, CUevent first, CUevent last) {
  if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::int64_t times[2] = {0, 0};
  int i = 0;
  for (const CUevent handle : {first, last}) {
    std::unique_lock<std::mutex> lock;
    event_slot* e = lock_event(*this, handle, lock);
    if (e == nullptr || e->when == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (!reached(*e)) return CUDA_ERROR_NOT_READY;
    times[i++] = e->when->load(std::memory_order_acquire);
  }
  *milliseconds = static_cast<float>(static_cast<double>(times[1] - times[0]) / 1e6);
  return CUDA_SUCCESS;
}

CUresult machine_state::cuStreamWaitEvent(CUstream waiting, CUevent handle, unsigned flags) {
  stream_ref s;
  if (flags != CU_EVENT_WAIT_DEFAULT) return CUDA_ERROR_NOT_SUPPORTED;
  if (const CUresult result = resolve(waiting, s); result != CUDA_SUCCESS) return result;
  std::unique_lock<std::mutex> lock;
  const event_slot* e = lock_event(*this, handle, lock);
  if (e == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const std::vector<point> covered = e->points;
  const std::shared_ptr<capture> from = e->captured_in;
  const capture_clock clock = e->clock;
  lock.unlock();

  const std::shared_ptr<capture> own = open_captures.load() != 0 ? capture_of(*s.core) : nullptr;
  if (own != nullptr) {
    if (!own->valid()) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (from == own) {
      own->wait(s.core, clock);
      return CUDA_SUCCESS;
    }
    if (from == nullptr && covered.empty()) return CUDA_SUCCESS;  // nothing to wait for
    own->invalidate();
    if (from == nullptr || from->ended()) return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    from->invalidate();
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  if (from != nullptr) {
    if (from->ended()) return CUDA_ERROR_CAPTURED_EVENT;
    if (!from->valid()) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (s.legacy) {
      from->invalidate();
      return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    // The stream joins the capture.
    const std::lock_guard join(s.core->capture_mutex);
    s.core->capturing = from;
    s.core->in_capture.store(true, std::memory_order_release);
    from->wait(s.core, clock);
    return CUDA_SUCCESS;
  }
  order_with_legacy(s);
  for (const point& p : covered) {
    if (p.core != s.core) s.core->add(p);
  }
  return CUDA_SUCCESS;
}

}  // namespace weir::sim
