#include "service/life_cycle.hpp"

#include <cinttypes>
#include <cstdlib>
#include <string>

#include "weir/simulation.hpp"

#include "cache/taking.hpp"
#include "cache/thread_cache.hpp"
#include "coordinator/lane_directory.hpp"
#include "coordinator/lanes.hpp"
#include "coordinator/maintenance.hpp"
#include "driver/error.hpp"
#include "driver/real.hpp"
#include "vm/pending.hpp"
#include "vm/trim.hpp"

namespace weir::service_detail {

namespace {

constexpr std::chrono::seconds longest_goodbye{10};

// Services over the real driver, so that the exit handler can close them.
struct open_services {
  std::mutex mutex;
  std::vector<coordinator::core*> cores;
};
open_services& real_services() {
  static auto* s = new open_services;  // never destroyed: it is used at exit
  return *s;
}

// Runs before the driver's own exit handler, since it is registered after cuInit: from here on nothing is called.
void process_exits() {
  open_services& s = real_services();
  const std::lock_guard lock(s.mutex);
  for (coordinator::core* c : s.cores) {
    c->ending.store(true, std::memory_order_release);
    for (const auto& d : c->devices) d->memory.lost.store(true, std::memory_order_release);
  }
}

int count_devices(const driver::table& t) {
  int count = 0;
  return t.cuDeviceGetCount(&count) == CUDA_SUCCESS ? count : 0;
}

// The installed driver, initialised; null and a reason if it is of no use.
const driver::table* installed(std::string& why) {
  const driver::real_driver d = driver::open_real_driver();
  if (d.functions == nullptr) {
    why = d.error;
    return nullptr;
  }
  if (const CUresult r = d.functions->cuInit(0); r != CUDA_SUCCESS) {
    why = driver::describe(*d.functions, "cuInit", r);
    return nullptr;
  }
  static const bool registered = [] {
    (void)real_services();
    return std::atexit(process_exits) == 0;
  }();
  (void)registered;
  if (count_devices(*d.functions) == 0) {
    why = "the driver finds no device";
    return nullptr;
  }
  return d.functions;
}

std::shared_ptr<sim::machine> make_machine(const config& c) {
  sim::machine_config m;
  m.devices.resize(static_cast<std::size_t>(c.simulated_devices));
  for (sim::device_config& d : m.devices) d.memory = c.simulated_memory;
  return std::make_shared<sim::machine>(std::move(m));
}

void choose_driver(coordinator::core& c) {
  if (c.machine == nullptr && c.options.driver != backend::simulated) {
    std::string why;
    c.functions = installed(why);
    if (c.functions != nullptr) return;
    if (c.options.driver == backend::cuda) throw error(errc::not_supported, "no CUDA device: " + why);
    c.told.say(log_level::warning, -1, "no CUDA device (%s): simulated devices serve instead", why.c_str());
  }
  if (c.machine == nullptr) c.machine = make_machine(c.options);
  c.functions = &c.machine->table();
  if (const CUresult r = c.functions->cuInit(0); r != CUDA_SUCCESS) {
    throw error(errc::driver_error, driver::describe(*c.functions, "cuInit", r));
  }
}

// Until what is pending has gone home, or it takes too long.
void wait_for_pending(coordinator::core& c, std::chrono::steady_clock::time_point deadline) noexcept {
  for (;;) {
    std::uint64_t bytes = 0;
    for (const auto& d : c.devices) {
      if (d->memory.context() == nullptr || d->memory.lost.load(std::memory_order_acquire)) continue;
      const auto step = std::min(deadline, std::chrono::steady_clock::now() + std::chrono::milliseconds(2));
      if (vm::pending(d->memory).bytes != 0) vm::wait_pending(d->memory, nullptr, ~std::uint64_t{0}, step);
      bytes += vm::pending(d->memory).bytes;
    }
    if (bytes == 0 || std::chrono::steady_clock::now() >= deadline) return;
  }
}

// Blocks of these lanes wait for streams that go on: they cannot end.
bool waits(const lane_state& l) noexcept {
  return l.base.pending_blocks.load(std::memory_order_acquire) != 0 ||
         l.base.outbox.waiting.load(std::memory_order_acquire) != 0;
}

void end_lanes(coordinator::core& c) noexcept {
  coordinator::for_each_lane(c, [&](lane_state& l) {
    cache::forget_caches(l.number());
    if (waits(l)) return;
    const int device = l.device->memory.ordinal();
    if (const std::uint64_t live = l.base.heap->abandon_blocks(); live != 0) {
      c.told.say(log_level::info, device, "device %d: the service ends with %" PRIu64 " live blocks of lane %" PRIu32,
                 device, live, l.number());
    }
  });
}

// Unmaps what the GPU has passed, until nothing is left or it takes too long.
bool give_back(coordinator::core& c, std::chrono::steady_clock::time_point deadline) noexcept {
  for (;;) {
    bool held = false;
    for (const auto& d : c.devices) {
      if (d->memory.context() == nullptr || d->memory.lost.load(std::memory_order_acquire)) continue;
      vm::collect(d->memory, nullptr);
      coordinator::for_each_lane(c, [&](lane_state& l) {
        if (l.device == d.get()) vm::retire_free_chunks(l.base, 0);
      });
      vm::finish_retiring(d->memory);
      held = held || d->memory.reserved() != 0;
    }
    if (!held) return true;
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

void begin(coordinator::core& c, std::shared_ptr<sim::machine> machine) {
  c.options.check();
  if (!cache::start_caches()) {
    throw error(cache::can_take() ? errc::not_after_fork : errc::not_supported,
                "service: the thread caches cannot be made (out of host addresses, or in a forked child)");
  }
  cache::thread_budget.store(c.options.thread_cache, std::memory_order_relaxed);
  c.told.stderr_level.store(c.options.log, std::memory_order_relaxed);
  c.machine = std::move(machine);
  choose_driver(c);
  c.default_pool = new pool_state(c, "default");
  vm::settings s;
  s.limit = c.options.limit;
  s.chunk_size = c.options.chunk_size;
  s.piece_size = c.options.piece_size;
  s.growth_patience = c.options.growth_patience;
  s.context_fence = c.options.context_fence;
  s.trim_holds = &c.trim_holds;
  const int count = count_devices(*c.functions);
  for (int i = 0; i < count; ++i) {
    c.devices.push_back(std::make_unique<coordinator::device_state>(c, *c.functions, i, s));
  }
  coordinator::list_hooks(&c.told);
  if (c.machine == nullptr) {
    open_services& all = real_services();
    const std::lock_guard lock(all.mutex);
    all.cores.push_back(&c);
  }
}

void end(coordinator::core& c) noexcept {
  coordinator::end_maintenance(c);
  coordinator::drain_limbo(c);
  c.ending.store(true, std::memory_order_release);
  const auto deadline = std::chrono::steady_clock::now() + longest_goodbye;
  // Pending blocks first, while their lanes still know them.
  wait_for_pending(c, deadline);
  end_lanes(c);
  const bool all_back = give_back(c, deadline);
  if (!all_back) {
    c.told.say(log_level::warning, -1, "the service ended while the GPU was still using its memory: some stays mapped");
  }
  coordinator::for_each_lane(c, [&](lane_state& l) {
    const bool empty = l.base.memory.address_bytes.load(std::memory_order_acquire) == 0;
    if (empty && !waits(l) && !l.device->memory.lost.load(std::memory_order_acquire) && vm::release_lane(l.base)) {
      coordinator::end_lane(l);
    } else {
      // Its addresses are still mapped: the record can never serve another lane, but calls of old handles end here.
      l.core.store(nullptr, std::memory_order_release);
      l.base.device = nullptr;
    }
  });
  coordinator::unlist_hooks(&c.told);
  {
    open_services& all = real_services();
    const std::lock_guard lock(all.mutex);
    std::erase(all.cores, &c);
  }
  for (pool_state* p : c.pools) {
    p->owner.store(nullptr, std::memory_order_release);
    p->drop();
  }
  if (c.default_pool != nullptr) c.default_pool->drop();
}

}  // namespace weir::service_detail
