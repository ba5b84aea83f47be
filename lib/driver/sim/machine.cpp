// The public face of a simulated machine.

#include <algorithm>
#include <cstring>

#include "driver/error.hpp"
#include "driver/sim/machine_state.hpp"

namespace weir::sim {
namespace {

std::uint64_t number_of(const void* p) { return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(p)); }

void check(const machine_state& m, CUresult result, std::string_view what) {
  if (result != CUDA_SUCCESS) throw std::runtime_error(driver::describe(m.functions, what, result));
}

// Brings a device's context up for the machine's own use, and keeps it.
context_state& context_of(machine_state& m, int device) {
  device_state* d = nullptr;
  check(m, m.device_at(device, d), "sim::machine");
  m.initialized.store(true, std::memory_order_release);
  if (d->context.id.load(std::memory_order_acquire) == 0) {
    CUcontext handle = nullptr;
    check(m, m.cuDevicePrimaryCtxRetain(&handle, device), "cuDevicePrimaryCtxRetain");
  }
  return d->context;
}

// The default streams are those of the current device, or of device 0.
stream_ref find(machine_state& m, stream_t stream, std::string_view what) {
  stream_ref s;
  const bool by_thread = stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
  if (!by_thread || m.current_device() >= 0) {
    check(m, m.resolve(stream, s), what);
    return s;
  }
  m.me().contexts.push_back(&context_of(m, 0));
  const CUresult result = m.resolve(stream, s);
  m.me().contexts.pop_back();
  check(m, result, what);
  return s;
}

driver::call call_named(std::string_view name) {
  const std::size_t found = driver::find_call(name);
  if (found == driver::call_count)
    throw std::invalid_argument("sim::machine: no driver call is named " + std::string(name));
  return static_cast<driver::call>(found);
}

device_state& device_of(const machine_state& m, int device) {
  device_state* d = nullptr;
  if (m.device_at(device, d) != CUDA_SUCCESS)
    throw std::invalid_argument("sim::machine: there is no device " + std::to_string(device));
  return *d;
}

}  // namespace

machine::machine(machine_config config) : state_(std::make_unique<machine_state>(std::move(config))) {}

machine::~machine() {
  // A forked child has none of the machine's threads: nothing can be ended there, and nothing needs to be.
  if (in_forked_child()) static_cast<void>(state_.release());
}

const machine_config& machine::config() const noexcept { return state_->config; }
int machine::device_count() const noexcept { return static_cast<int>(state_->devices.size()); }
const driver::table& machine::table() const noexcept { return state_->functions; }

stream_t machine::create_stream(int device, bool blocking) {
  context_state& c = context_of(*state_, device);
  stream_slot* made = nullptr;
  check(*state_, state_->make_stream(c, blocking ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING, 0, made),
        "create_stream");
  return static_cast<stream_t>(static_cast<void*>(made));
}

void machine::destroy_stream(stream_t stream) { check(*state_, state_->cuStreamDestroy(stream), "cuStreamDestroy"); }

void machine::synchronize(stream_t stream) {
  const stream_ref s = find(*state_, stream, "synchronize");
  if (s.legacy) state_->order_with_legacy(s);
  s.core->wait_for(s.core->tail().sequence);
  check(*state_, static_cast<CUresult>(s.device->error.load()), "synchronize");
}

void machine::synchronize(int device) {
  check(*state_, state_->wait_for_device(device_of(*state_, device)), "synchronize");
}

bool machine::idle(stream_t stream) { return !find(*state_, stream, "idle").core->busy(); }

void machine::launch(stream_t stream, std::function<void()> kernel_function) {
  const stream_ref s = find(*state_, stream, "launch");
  check(*state_, state_->submit(s, kernel{std::move(kernel_function), s.device->index, false}), "launch");
}

void machine::fill(stream_t stream, void* p, unsigned char value, std::size_t bytes) {
  launch(stream, [p, value, bytes] { std::memset(sim::view(kernel_device(), p, bytes), value, bytes); });
}

void machine::expect(stream_t stream, const void* p, unsigned char value, std::size_t bytes,
                     std::function<void(std::size_t, unsigned char)> wrong) {
  launch(stream, [p, value, bytes, wrong = std::move(wrong)] {
    const auto* found = static_cast<const unsigned char*>(sim::view(kernel_device(), p, bytes, access::read));
    const auto* bad = std::find_if(found, found + bytes, [&](unsigned char c) { return c != value; });
    if (bad != found + bytes) wrong(static_cast<std::size_t>(bad - found), *bad);
  });
}

void machine::wait(stream_t stream, const gate& until) {
  check(*state_, state_->submit(find(*state_, stream, "wait"), until), "wait");
}

gate machine::hold(stream_t stream) {
  gate made;
  wait(stream, made);
  return made;
}

void machine::order(stream_t first, stream_t waiter) {
  const stream_ref from = find(*state_, first, "order");
  const stream_ref to = find(*state_, waiter, "order");
  state_->order_with_legacy(from);
  check(*state_, state_->submit(to, from.core->tail()), "order");
}

int machine::set_device(int device) {
  const int before = state_->current_device();
  CUcontext handle = nullptr;
  if (device >= 0) handle = static_cast<CUcontext>(static_cast<void*>(&context_of(*state_, device)));
  check(*state_, state_->cuCtxSetCurrent(handle), "cuCtxSetCurrent");
  return before;
}

int machine::current_device() const { return state_->current_device(); }

bool machine::context_active(int device) const { return device_of(*state_, device).context.id.load() != 0; }

void* machine::view(int device, const void* p, std::size_t bytes, access kind) {
  return state_->view(device, number_of(p), bytes, kind, false);
}

bool machine::accessible(int device, const void* p, std::size_t bytes, access kind) const {
  return state_->can_view(device, number_of(p), bytes, kind);
}

std::uint64_t machine::reserved_bytes(int device) const { return device_of(*state_, device).memory->used(); }
std::uint64_t machine::reserved_host_bytes(int node) const {
  return state_->host_nodes.at(static_cast<std::size_t>(node))->used();
}

void machine::other_process_holds(int device, std::uint64_t bytes) {
  device_of(*state_, device).memory->others.store(bytes, std::memory_order_release);
}

live_counts machine::live() const { return state_->live(); }

std::vector<fault> machine::faults() const { return state_->faults.all(); }
void machine::clear_faults() { state_->faults.clear(); }
void machine::on_fault(std::function<void(const fault&)> hook) { state_->faults.set_hook(std::move(hook)); }

void machine::fail(std::string_view call, std::uint64_t k, result with, std::uint64_t count, int device) {
  state_->failures.add(call_named(call), k, static_cast<CUresult>(with), count, device);
}
void machine::clear_failures() { state_->failures.clear(); }

void machine::kill(int device, result with) {
  state_->kill(device_of(*state_, device).index, static_cast<CUresult>(with));
}
void machine::reset(int device) { state_->reset(device_of(*state_, device).index); }

std::vector<call_record> machine::calls() const {
  std::vector<call_record> all;
  for (std::size_t i = 0; i < driver::call_count; ++i) {
    const call_ledger::entry e = state_->ledger.of(static_cast<driver::call>(i));
    if (e.count == 0) continue;
    all.push_back({std::string(driver::call_list[i].name), e.count, e.failed, std::chrono::nanoseconds(e.cost)});
  }
  return all;
}

std::uint64_t machine::calls(std::string_view name) const { return state_->ledger.of(call_named(name)).count; }
void machine::reset_calls() { state_->ledger.clear(); }

void machine::use_default_costs(double sleep_scale) { state_->costs.use_defaults(sleep_scale); }
void machine::set_cost(std::string_view call, std::chrono::nanoseconds cost, int device) {
  state_->costs.set(call_named(call), cost, device);
}

void* view(int device, const void* p, std::size_t bytes, access kind) {
  const running_kernel* kernel = this_thread().kernel;
  machine_state* m = kernel != nullptr ? kernel->machine : nullptr;
  for (unsigned i = 0; i < machine_slots && m == nullptr; ++i) {
    with_machine(i, [&](machine_state* one) {
      if (one != nullptr && one->knows(number_of(p))) m = one;
    });
  }
  if (m == nullptr) throw illegal_access("sim::view: no simulated machine knows the address");
  return m->view(device, number_of(p), bytes, kind, false);
}

int kernel_device() noexcept {
  const running_kernel* kernel = this_thread().kernel;
  return kernel != nullptr ? kernel->device : -1;
}

void launch(stream_t stream, std::function<void()> kernel_function) {
  machine_state* m = nullptr;
  for (unsigned i = 0; i < machine_slots && m == nullptr; ++i) {
    with_machine(i, [&](machine_state* one) {
      if (one != nullptr && one->streams.find(stream) != nullptr) m = one;
    });
  }
  if (m == nullptr) throw std::invalid_argument("sim::launch: the stream belongs to no simulated machine");
  const stream_ref s = find(*m, stream, "launch");
  check(*m, m->submit(s, kernel{std::move(kernel_function), s.device->index, false}), "launch");
}

}  // namespace weir::sim
