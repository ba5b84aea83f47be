// What a service tells of itself: query, statistics, summary, check.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "weir/service.hpp"
#include "weir/simulation.hpp"

#include "cache/thread_cache.hpp"
#include "coordinator/lane_directory.hpp"
#include "coordinator/measure.hpp"
#include "service/implementation.hpp"

namespace weir {

bool service::query(const void* address, block_info& out) const noexcept {
  heap::block_place at;
  if (!heap::lane_heap::find(reinterpret_cast<std::uint64_t>(address), at)) return false;
  const lane_state& l = lane_state_of(*at.lane);
  if (l.core.load(std::memory_order_acquire) != &implementation_->core) return false;
  const bool live = (at.state & heap::live_bit) != 0;
  if (!live && at.state != heap::code_pending) return false;
  out.base = reinterpret_cast<void*>(at.base);
  out.bytes = at.bytes;
  out.device = l.base.device->ordinal();
  out.stream = l.base.stream;
  out.live = live;
  return true;
}

weir::statistics service::statistics() const {
  weir::statistics s;
  if (!cache::usable_here()) throw error(errc::not_after_fork, "statistics: not usable after fork");
  std::map<std::string_view, driver_call_count> calls;
  for (const auto& d : implementation_->core.devices) {
    s.devices.push_back(coordinator::measure(*d));
    const auto totals = d->memory.counters().snapshot();
    for (std::size_t i = 0; i < totals.size(); ++i) {
      if (totals[i].count == 0) continue;
      driver_call_count& sum = calls[driver::call_list[i].name];
      sum.name = driver::call_list[i].name;
      sum.calls += totals[i].count;
      sum.seconds += static_cast<double>(totals[i].nanoseconds) * 1e-9;
    }
  }
  for (auto& [name, count] : calls) s.driver_calls.push_back(std::move(count));
  s.misuses = implementation_->core.told.misuses.load(std::memory_order_relaxed);
  s.threads = cache::thread_count();
  return s;
}

namespace {

std::string bytes(std::uint64_t n) {
  if (n < 10240) return fmt::format("{} B", n);
  const char* unit[] = {"KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(n) / 1024;
  std::size_t i = 0;
  while (value >= 10240 && i < 3) {
    value /= 1024;
    ++i;
  }
  return fmt::format("{:.1f} {}", value, unit[i]);
}

}  // namespace

std::string service::summary() const {
  const weir::statistics s = statistics();
  const coordinator::core& c = implementation_->core;
  std::string text = fmt::format("Weir: {} {} device{}, {} thread cache{}, {} misuse{}\n", c.devices.size(),
                                 c.machine != nullptr ? "simulated" : "CUDA", c.devices.size() == 1 ? "" : "s",
                                 s.threads, s.threads == 1 ? "" : "s", s.misuses, s.misuses == 1 ? "" : "s");
  text += fmt::format("{:>6} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12}\n", "device", "live", "peak live",
                      "cached", "pending", "free pages", "reserved", "peak");
  for (const device_statistics& d : s.devices) {
    text += fmt::format("{:>6} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12}\n", d.device, bytes(d.live),
                        bytes(d.live_peak), bytes(d.cached), bytes(d.pending), bytes(d.free_pages), bytes(d.reserved),
                        bytes(d.reserved_peak));
  }
  for (const device_statistics& d : s.devices) {
    if (d.reserved_peak == 0) continue;
    text += fmt::format(
        "device {}: asked {}, slack {}, retiring {}, stranded {}, limit {}; {} lanes, {} allocations, {} frees, "
        "{} growths, {} out of memory; addresses {}, host records {}\n",
        d.device, bytes(d.asked), bytes(d.slack), bytes(d.retiring), bytes(d.stranded),
        c.devices[static_cast<std::size_t>(d.device)]->memory.limit.load(std::memory_order_relaxed) == 0
            ? "none"
            : bytes(c.devices[static_cast<std::size_t>(d.device)]->memory.limit.load(std::memory_order_relaxed)),
        d.lanes, d.allocations, d.frees, d.growths, d.out_of_memory, bytes(d.addresses), bytes(d.metadata));
  }
  text += "driver calls:";
  for (const driver_call_count& call : s.driver_calls) {
    text += call.seconds > 0 ? fmt::format(" {} {} ({:.1f} ms)", call.name, call.calls, call.seconds * 1e3)
                             : fmt::format(" {} {}", call.name, call.calls);
  }
  return text + "\n";
}

std::string service::check() {
  coordinator::core& c = implementation_->core;
  if (!cache::usable_here()) throw error(errc::not_after_fork, "check: not usable after fork");
  std::string fault;
  // The maintenance thread has blocks in its hands while it works; one that is stopped is not waited for.
  std::unique_lock between_rounds(c.maintenance_round, std::try_to_lock);
  for (int i = 0; i < 2000 && !between_rounds; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    static_cast<void>(between_rounds.try_lock());
  }
  const coordinator::walk here(c);
  coordinator::for_each_lane(c, [&](lane_state& l) {
    const char* f = l.base.heap->fault();
    if (f != nullptr && fault.empty()) fault = fmt::format("lane {}: {}", l.number(), f);
  });
  if (!fault.empty()) return fault;
  for (const auto& d : c.devices) {
    const device_statistics s = coordinator::measure(*d);
    const std::uint64_t sum = s.live + s.cached + s.pending + s.free_pages + s.slack + s.retiring;
    if (sum != s.reserved) {
      return fmt::format(
          "device {}: live {} + cached {} + pending {} + free pages {} + slack {} + retiring {} = {}, but {} are "
          "reserved",
          s.device, s.live, s.cached, s.pending, s.free_pages, s.slack, s.retiring, sum, s.reserved);
    }
    if (c.machine != nullptr && c.machine->reserved_bytes(s.device) < s.reserved) {
      return fmt::format("device {}: {} bytes are reserved, but the driver counts only {}", s.device, s.reserved,
                         c.machine->reserved_bytes(s.device));
    }
  }
  return {};
}

}  // namespace weir
