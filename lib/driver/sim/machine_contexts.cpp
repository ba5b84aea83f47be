// Threads, contexts, and devices that are lost or reset.

#include <algorithm>

#include "driver/sim/machine_state.hpp"

namespace weir::sim {

thread_view& machine_state::me() {
  std::unique_ptr<thread_view>& view = this_thread().views[slot];
  if (view == nullptr || view->machine != serial) {
    view = std::make_unique<thread_view>();
    view->machine = serial;
  }
  return *view;
}

void machine_state::thread_ends(unsigned slot_number, thread_view& view) {
  if (view.default_streams.empty()) return;
  with_machine(slot_number, [&](machine_state* m) {
    if (m == nullptr || m->serial != view.machine) return;
    for (const thread_view::default_stream& s : view.default_streams) {
      if (s.slot->id.load() != 0) m->retire_stream(*s.slot);
      m->streams.give_back(s.slot);
    }
  });
}

context_state* machine_state::find_context(CUcontext handle) const {
  for (const auto& d : devices) {
    if (static_cast<void*>(&d->context) == static_cast<void*>(handle)) return &d->context;
  }
  return nullptr;
}

CUresult machine_state::current(context_state*& out) {
  const thread_view& view = me();
  if (view.contexts.empty() || view.contexts.back() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  out = view.contexts.back();
  if (out->id.load(std::memory_order_acquire) == 0) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return static_cast<CUresult>(out->device->error.load(std::memory_order_acquire));
}

int machine_state::current_device() {
  const thread_view& view = me();
  return view.contexts.empty() || view.contexts.back() == nullptr ? -1 : view.contexts.back()->device->index;
}

CUresult machine_state::device_at(CUdevice index, device_state*& out) const {
  if (index < 0 || static_cast<std::size_t>(index) >= devices.size()) return CUDA_ERROR_INVALID_DEVICE;
  out = devices[static_cast<std::size_t>(index)].get();
  return CUDA_SUCCESS;
}

void machine_state::activate(context_state& c) {
  const std::uint64_t id = next_id.fetch_add(1);
  auto core = std::make_shared<stream_core>(*this, threads, c.device->index, next_id.fetch_add(1), true);
  c.cores = {core};
  {
    const std::lock_guard lock(c.legacy.mutex);
    c.legacy.core = core;
    c.legacy.is_default = true;
    c.legacy.device.store(c.device->index);
    c.legacy.id.store(core->id());
  }
  c.legacy_used.store(false);
  c.id.store(id, std::memory_order_release);
}

// Streams, events and plain allocations go with their context.
void machine_state::deactivate(context_state& c, bool because_reset) {
  const int device = c.device->index;
  std::vector<std::shared_ptr<stream_core>> cores;
  std::uint64_t id = 0;
  {
    const std::lock_guard lock(c.mutex);
    cores.swap(c.cores);
    id = c.id.exchange(0);
    c.peers.store(0);
    c.references = 0;
  }
  if (id == 0) return;
  const bool busy = std::any_of(cores.begin(), cores.end(), [](const auto& core) { return core->busy(); });
  if (busy) {
    faults.report(fault_kind::busy_context,
                  "device " + std::to_string(device) + ": context " + (because_reset ? "reset" : "released") +
                      " with work queued",
                  device);
  }
  if (because_reset) {
    for (const auto& core : cores) core->drop();
  }
  streams.each([&](stream_slot& s) {
    if (s.device.load() != device || s.id.load() == 0) return;
    const bool is_default = s.is_default;
    retire_stream(s);
    if (!is_default) streams.give_back(&s);  // a thread gives its default stream's slot back itself
  });
  retire_stream(c.legacy);
  events.each([&](event_slot& e) {
    const std::lock_guard lock(e.mutex);
    if (!e.alive || e.context_id != id) return;
    e.alive = false;
    e.points.clear();
    events.give_back(&e);
  });
  std::vector<std::shared_ptr<reservation>> gone;
  {
    const std::lock_guard lock(plain_mutex);
    for (auto it = plain.begin(); it != plain.end();) {
      const std::lock_guard inner(it->second->mutex);
      const bool ours =
          !it->second->mappings.empty() && it->second->mappings.begin()->second->memory->home->owner() == device;
      if (ours) gone.push_back(it->second);
      it = ours ? plain.erase(it) : std::next(it);
    }
  }
  for (const auto& range : gone) free_plain(range);
}

void machine_state::kill(int device, CUresult with) {
  device_state& d = *devices[static_cast<std::size_t>(device)];
  int none = 0;
  d.error.compare_exchange_strong(none, static_cast<int>(with));  // the first error stays
  for (const auto& core : cores_of(d.context)) core->wake_if_parked();
}

void machine_state::reset(int device) {
  device_state& d = *devices[static_cast<std::size_t>(device)];
  deactivate(d.context, true);
  const auto held = handles[static_cast<std::size_t>(device)]->clear();
  std::vector<std::shared_ptr<physical>> all = held;
  for (const auto& range : addresses.all()) {
    const std::lock_guard lock(range->mutex);
    for (const auto& [base, m] : range->mappings) {
      if (m->memory->home == d.memory) all.push_back(m->memory);
    }
  }
  for (const auto& p : all) {
    if (!p->lost.exchange(true)) d.memory->discharge(p->bytes);
  }
  d.error.store(0, std::memory_order_release);
}

}  // namespace weir::sim
