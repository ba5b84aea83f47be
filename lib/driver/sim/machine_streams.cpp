// Streams: looking them up, making and retiring them, and giving them work.

#include <algorithm>

#include "driver/sim/machine_state.hpp"

namespace weir::sim {
namespace {

std::string handle_text(const void* handle) {
  char text[32];
  std::snprintf(text, sizeof text, "%p", handle);
  return text;
}

}  // namespace

CUresult machine_state::resolve(CUstream handle, stream_ref& out) {
  stream_slot* s = nullptr;
  if (handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
    context_state* c = nullptr;
    if (const CUresult result = current(c); result != CUDA_SUCCESS) return result;
    out.legacy = handle != CU_STREAM_PER_THREAD;
    s = out.legacy ? &c->legacy : default_stream_of_thread(*c);
    if (out.legacy) c->legacy_used.store(true, std::memory_order_release);
    if (s == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  } else {
    s = streams.find(handle);
  }
  if (s != nullptr) {
    const std::lock_guard lock(s->mutex);
    out.core = s->core;
  }
  if (out.core == nullptr) {
    faults.report(fault_kind::dead_handle,
                  "stream " + handle_text(handle) + (s != nullptr ? " was destroyed" : " was never made"));
    return CUDA_ERROR_INVALID_HANDLE;
  }
  out.slot = s;
  out.device = devices[static_cast<std::size_t>(out.core->device())].get();
  return static_cast<CUresult>(out.device->error.load(std::memory_order_acquire));
}

stream_slot* machine_state::default_stream_of_thread(context_state& c) {
  thread_view& view = me();
  const std::uint64_t id = c.id.load(std::memory_order_acquire);
  for (auto it = view.default_streams.begin(); it != view.default_streams.end(); ++it) {
    if (it->context != &c) continue;
    if (it->context_id == id) return it->slot;
    streams.give_back(it->slot);  // of a context that is gone
    view.default_streams.erase(it);
    break;
  }
  stream_slot* made = nullptr;
  if (make_stream(c, CU_STREAM_DEFAULT, 0, made) != CUDA_SUCCESS) return nullptr;
  made->is_default.store(true);
  view.default_streams.push_back({&c, id, made});
  return made;
}

CUresult machine_state::make_stream(context_state& c, unsigned flags, int priority, stream_slot*& out) {
  stream_slot* s = streams.take();
  if (s == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  auto core = std::make_shared<stream_core>(*this, threads, c.device->index, next_id.fetch_add(1),
                                            (flags & CU_STREAM_NON_BLOCKING) == 0);
  {
    const std::lock_guard lock(c.mutex);
    // Destroyed streams that have run dry are forgotten now and then.
    if (c.cores.size() == c.cores.capacity()) {
      c.cores.erase(std::remove_if(c.cores.begin(), c.cores.end(),
                                   [](const auto& old) { return old.use_count() == 1 && !old->busy(); }),
                    c.cores.end());
      if (c.cores.size() * 2 > c.cores.capacity()) c.cores.reserve(c.cores.capacity() * 2 + 8);
    }
    c.cores.push_back(core);
  }
  const std::lock_guard lock(s->mutex);
  s->core = std::move(core);
  s->flags = flags;
  s->priority = priority;
  s->is_default.store(false);
  s->device.store(c.device->index);
  s->id.store(s->core->id(), std::memory_order_release);
  out = s;
  return CUDA_SUCCESS;
}

// The handle dies; the work goes on.
void machine_state::retire_stream(stream_slot& s) {
  std::shared_ptr<stream_core> last;
  const std::lock_guard lock(s.mutex);
  s.id.store(0, std::memory_order_release);
  last.swap(s.core);
}

std::vector<std::shared_ptr<stream_core>> machine_state::cores_of(context_state& c) {
  const std::lock_guard lock(c.mutex);
  return c.cores;
}

CUresult machine_state::wait_for_device(device_state& d) {
  for (const auto& core : cores_of(d.context)) core->wait_for(core->tail().sequence);
  return static_cast<CUresult>(d.error.load(std::memory_order_acquire));
}

void machine_state::order_with_legacy(const stream_ref& on) {
  context_state& c = on.device->context;
  if (!c.legacy_used.load(std::memory_order_acquire)) return;
  if (on.legacy) {
    for (const auto& core : cores_of(c)) {
      if (core != on.core && core->blocking() && core->busy()) on.core->add(core->tail());
    }
    return;
  }
  if (!on.core->blocking()) return;
  std::shared_ptr<stream_core> legacy;
  {
    const std::lock_guard lock(c.legacy.mutex);
    legacy = c.legacy.core;
  }
  if (legacy != nullptr && legacy->busy()) on.core->add(legacy->tail());
}

CUresult machine_state::submit(const stream_ref& on, operation op) {
  if (open_captures.load(std::memory_order_acquire) != 0) {
    if (const auto c = capture_of(*on.core)) {
      if (!c->valid()) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
      c->add(*on.core, std::move(op));
      return CUDA_SUCCESS;
    }
    if (on.legacy) {
      // Work on the legacy stream would have to wait for the capturing streams.
      const auto broken = captures_on(on.core->device(), true);
      for (const auto& c : broken) c->invalidate();
      if (!broken.empty()) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
  }
  order_with_legacy(on);
  on.core->add(std::move(op), config.eager);
  return CUDA_SUCCESS;
}

}  // namespace weir::sim
