// The driver's functions are plain C pointers, so they find their machine by a number: a few slots, each with a set of
// functions of its own.

#include <array>
#include <atomic>
#include <functional>
#include <mutex>
#include <stdexcept>

#include "driver/sim/call_device.hpp"
#include "driver/sim/error_names.hpp"
#include "driver/sim/machine_state.hpp"

namespace weir::sim {
namespace {

std::array<std::atomic<machine_state*>, machine_slots> slots{};
std::mutex registry_mutex;
std::uint64_t next_serial = 1;

template <unsigned Slot, driver::call Kind, auto Method>
struct thunk;

template <unsigned Slot, driver::call Kind, class... Args, CUresult (machine_state::*Method)(Args...)>
struct thunk<Slot, Kind, Method> {
  static CUresult call(Args... args) {
    machine_state* m = slots[Slot].load(std::memory_order_acquire);
    if (m == nullptr) return CUDA_ERROR_DEINITIALIZED;
    thread_state& thread = this_thread();
    CUresult result = m->enter(Kind, thread);
    const bool priced = m->costs.active();
    int device = -1;
    if (result == CUDA_SUCCESS && (priced || m->failures.armed())) {
      device = device_of_call<Kind, Args...>(*m, args...);
      result = m->planned_failure(Kind, device);
    }
    if (result == CUDA_SUCCESS) {
      result = (m->*Method)(args...);
      if (priced) m->charge(Kind, device, thread);
    }
    m->ledger.add(Kind, thread.number, result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY);
    return result;
  }
};

template <unsigned Slot>
driver::table make_table() {
  driver::table t;
#define WEIR_SIM_ENTRY(name, version, presence, timing) \
  t.name = &thunk<Slot, driver::call::k_##name, &machine_state::name>::call;
  WEIR_DRIVER_CALLS(WEIR_SIM_ENTRY)
#undef WEIR_SIM_ENTRY
  // Names of results need no machine: they work in callbacks and before cuInit.
  t.cuGetErrorName = error_name;
  t.cuGetErrorString = error_string;
  return t;
}

template <std::size_t... Slots>
driver::table table_of_slot(unsigned slot, std::index_sequence<Slots...>) {
  static constexpr std::array makers{&make_table<static_cast<unsigned>(Slots)>...};
  return makers[slot]();
}

}  // namespace

void register_machine(machine_state& m) {
  const std::lock_guard lock(registry_mutex);
  for (unsigned i = 0; i < machine_slots; ++i) {
    if (slots[i].load() != nullptr) continue;
    m.slot = i;
    m.serial = next_serial++;
    m.functions = table_of_slot(i, std::make_index_sequence<machine_slots>());
    if (!m.config.context_events) m.functions.cuCtxRecordEvent = nullptr;
    slots[i].store(&m, std::memory_order_release);
    return;
  }
  throw std::runtime_error("sim::machine: 16 machines exist already");
}

void unregister_machine(machine_state& m) {
  const std::lock_guard lock(registry_mutex);
  slots[m.slot].store(nullptr, std::memory_order_release);
}

void with_machine(unsigned slot, const std::function<void(machine_state*)>& f) {
  const std::lock_guard lock(registry_mutex);
  f(slots[slot].load());
}

// cuGetErrorName and cuGetErrorString are in every list of calls, so the machine has methods for them too.
CUresult machine_state::cuGetErrorName(CUresult error, const char** name) { return error_name(error, name); }
CUresult machine_state::cuGetErrorString(CUresult error, const char** text) { return error_string(error, text); }

}  // namespace weir::sim
