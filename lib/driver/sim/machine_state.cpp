// Building and ending a machine, and the way in of every call.
#include "driver/sim/machine_state.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>

namespace weir::sim {
namespace {

constexpr std::size_t most_devices = 64;  // a mapping's access is one bit a device
constexpr std::size_t stream_capacity = std::size_t{1} << 18;
constexpr std::size_t event_capacity = std::size_t{1} << 20;
constexpr std::size_t graph_capacity = std::size_t{1} << 16;

machine_config checked(machine_config c) {
  auto power_of_two = [](std::uint64_t n) { return n != 0 && (n & (n - 1)) == 0; };
  if (c.devices.size() > most_devices) throw std::invalid_argument("sim::machine: more than 64 devices");
  if (!power_of_two(c.granularity) || c.granularity < 4096)
    throw std::invalid_argument("sim::machine: granularity is not a power of two of at least 4096");
  if (!power_of_two(c.reservation_alignment) || c.reservation_alignment < 4096)
    throw std::invalid_argument("sim::machine: reservation_alignment is not a power of two of at least 4096");
  if (c.numa_nodes.empty()) throw std::invalid_argument("sim::machine: numa_nodes is empty");
  const int count = static_cast<int>(c.devices.size());
  for (const auto& [a, b] : c.no_peer) {
    if (a < 0 || b < 0 || a >= count || b >= count)
      throw std::invalid_argument("sim::machine: no_peer names no device");
  }
  return c;
}

// The driver takes simulated time as a sleep, or for short times as a spin: a sleep is never shorter than about 60 us.
void spend(std::uint64_t nanoseconds) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(nanoseconds);
  if (nanoseconds > 200'000) std::this_thread::sleep_for(std::chrono::nanoseconds(nanoseconds));
  while (std::chrono::steady_clock::now() < until) std::this_thread::yield();
}

}  // namespace

machine_state::machine_state(machine_config c)
    : config(checked(std::move(c))),
      addresses({config.reservation_alignment, config.honour_alignment, config.max_reservation, config.reservable}),
      streams(stream_capacity, config.reuse_handles),
      events(event_capacity, config.reuse_handles),
      graphs(graph_capacity, config.reuse_handles) {
  const std::size_t count = config.devices.size();
  for (std::size_t i = 0; i < count; ++i) {
    auto d = std::make_unique<device_state>();
    d->index = static_cast<int>(i);
    d->memory = std::make_shared<backing>(d->index, config.devices[i].memory);
    d->context.device = d.get();
    devices.push_back(std::move(d));
    handles.push_back(std::make_unique<handle_table>(static_cast<unsigned>(handles.size())));
    peer_bits.push_back(count == most_devices ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1);
  }
  for (std::size_t i = 0; i < config.numa_nodes.size(); ++i) {
    host_nodes.push_back(std::make_shared<backing>(-1 - static_cast<int>(i), config.numa_nodes[i]));
    handles.push_back(std::make_unique<handle_table>(static_cast<unsigned>(handles.size())));
  }
  for (const auto& [a, b] : config.no_peer) {
    if (a == b) continue;
    peer_bits[static_cast<std::size_t>(a)] &= ~(std::uint64_t{1} << b);
    peer_bits[static_cast<std::size_t>(b)] &= ~(std::uint64_t{1} << a);
  }
  register_machine(*this);
}

machine_state::~machine_state() {
  unregister_machine(*this);
  stopping.store(true, std::memory_order_release);
  threads->stop();
}

bool machine_state::peers(int from, int to) const {
  return ((peer_bits[static_cast<std::size_t>(from)] >> to) & 1U) != 0;
}

CUresult machine_state::enter(driver::call c, thread_state& thread) {
  if (in_forked_child()) {
    return CUDA_ERROR_NOT_INITIALIZED;  // no lock may be trusted here: nothing is recorded
  }
  if (thread.kernel != nullptr) {
    faults.report(fault_kind::call_in_callback,
                  std::string(driver::info(c).name) + " called from a kernel or host function", thread.kernel->device,
                  thread.kernel->stream_id);
    return CUDA_ERROR_NOT_PERMITTED;
  }
  if (!initialized.load(std::memory_order_acquire) && c != driver::call::k_cuInit &&
      c != driver::call::k_cuDriverGetVersion) {
    return CUDA_ERROR_NOT_INITIALIZED;
  }
  return CUDA_SUCCESS;
}

void machine_state::charge(driver::call c, int device, thread_state& thread) {
  thread_view& view = me();
  const cost_plan::price price = costs.of(c, device, view.cost_hint);
  view.cost_hint = 0;
  if (price.nanoseconds != 0) ledger.add_cost(c, thread.number, price.nanoseconds);
  if (price.sleep == 0) return;
  if (device < 0 || static_cast<std::size_t>(device) >= devices.size()) return spend(price.sleep);
  const std::lock_guard lock(devices[static_cast<std::size_t>(device)]->busy);
  spend(price.sleep);
}

live_counts machine_state::live() {
  live_counts n;
  for (const auto& t : handles) {
    t->each([&](const physical& p) {
      ++n.handles;
      n.handle_bytes += p.bytes;
    });
  }
  for (const auto& range : addresses.all()) {
    if (range->internal) continue;
    ++n.reservations;
    n.reserved_addresses += range->bytes();
    const std::lock_guard lock(range->mutex);
    for (const auto& [base, m] : range->mappings) {
      ++n.mappings;
      n.mapped_bytes += m->bytes;
    }
  }
  {
    const std::lock_guard lock(plain_mutex);
    n.allocations = plain.size();
  }
  streams.each([&](const stream_slot& s) { n.streams += s.id.load() != 0 && !s.is_default ? 1 : 0; });
  events.each([&](event_slot& e) {
    const std::lock_guard lock(e.mutex);
    n.events += e.alive ? 1 : 0;
  });
  graphs.each([&](graph_slot& g) {
    const std::lock_guard lock(g.mutex);
    n.graphs += g.nodes != nullptr ? 1 : 0;
  });
  const pinned_memory::totals host = pinned.sum();
  n.pinned_blocks = host.blocks;
  n.pinned_bytes = host.bytes;
  return n;
}

}  // namespace weir::sim
