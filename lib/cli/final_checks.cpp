#include "cli/final_checks.hpp"

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <thread>

namespace weir::cli {
namespace {

std::string parts_of(const device_statistics& d) {
  return fmt::format("live {} + cached {} + pending {} + free pages {} + slack {} + retiring {}", d.live, d.cached,
                     d.pending, d.free_pages, d.slack, d.retiring);
}

std::string fault_of(const device_statistics& d) {
  if (d.live != 0 || d.asked != 0) {
    return fmt::format("device {}: {} bytes live and {} asked after all blocks were freed", d.device, d.live, d.asked);
  }
  if (d.allocations != d.frees) {
    return fmt::format("device {}: {} allocations but {} frees", d.device, d.allocations, d.frees);
  }
  const std::uint64_t parts = d.live + d.cached + d.pending + d.free_pages + d.slack + d.retiring;
  if (parts == d.reserved) return {};
  return fmt::format("device {}: reserved {} bytes are not {} = {}", d.device, d.reserved, parts_of(d), parts);
}

// The first fault in the books, "" where there is none.
std::string fault_in_books(weir::service& s) {
  for (const device_statistics& d : s.statistics().devices) {
    std::string fault = fault_of(d);
    if (!fault.empty()) return fault;
  }
  const std::string wrong = s.check();
  return wrong.empty() ? wrong : fmt::format("the service's own check: {}", wrong);
}

std::uint64_t reserved(weir::service& s) { return s.statistics().total().reserved; }

// What must be gone after a full trim: physical memory and its mappings. Names the first that is not.
std::string left_after_trim(const sim::live_counts& live) {
  if (live.handles != 0) return fmt::format("{} physical handles ({} bytes)", live.handles, live.handle_bytes);
  if (live.mappings != 0) return fmt::format("{} mappings ({} bytes)", live.mappings, live.mapped_bytes);
  return {};
}

std::string left_at_end(const sim::live_counts& live) {
  std::string memory = left_after_trim(live);
  if (!memory.empty()) return memory;
  if (live.reservations != 0) return fmt::format("{} reservations of addresses", live.reservations);
  if (live.events != 0) return fmt::format("{} events", live.events);
  if (live.streams != 0) return fmt::format("{} streams", live.streams);
  if (live.pinned_blocks != 0) return fmt::format("{} pinned blocks", live.pinned_blocks);
  if (live.allocations != 0) return fmt::format("{} allocations", live.allocations);
  return {};
}

}  // namespace

void watch(rig& r, fault_list& faults) {
  r.service().on_misuse([&faults](const misuse& m) { faults.add(fmt::format("misuse reported: {}", m.text)); });
}

void check_quiet(rig& r, fault_list& faults) {
  r.synchronize();
  r.service().collect();
  std::string fault = fault_in_books(r.service());
  // The background thread may be moving memory about just now. What is lost stays lost.
  for (int i = 0; i < 50 && !fault.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    r.service().collect();
    fault = fault_in_books(r.service());
  }
  if (!fault.empty()) faults.add(fault);
}

void check_end(rig& r, fault_list& faults) {
  // Memory behind a fence follows when the GPU has passed it, and the background thread may be at work.
  r.service().trim();
  for (int i = 0; i < 200 && reserved(r.service()) != 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    r.service().trim();
  }
  const device_statistics kept = r.service().statistics().total();
  if (kept.reserved != 0) {
    faults.add(fmt::format("{} bytes still reserved after a full trim: {}", kept.reserved, parts_of(kept)));
  }
  sim::machine* machine = r.machine();
  if (machine != nullptr) {
    const std::string left = left_after_trim(machine->live());
    if (!left.empty()) faults.add(fmt::format("after a full trim the driver still holds {}", left));
  }
  r.close_streams();
  r.close_service();
  if (machine == nullptr) return;
  const std::string left = left_at_end(machine->live());
  if (!left.empty()) faults.add(fmt::format("after the service's end the driver still holds {}", left));
  for (const sim::fault& f : machine->faults()) faults.add(fmt::format("the simulated driver: {}", f.text));
}

}  // namespace weir::cli
