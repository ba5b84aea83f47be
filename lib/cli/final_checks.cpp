#include "cli/final_checks.hpp"

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <thread>

namespace weir::cli {
namespace {

void check_books(const device_statistics& d, fault_list& faults) {
  if (d.live != 0 || d.asked != 0) {
    faults.add(
        fmt::format("device {}: {} bytes live and {} asked after all blocks were freed", d.device, d.live, d.asked));
  }
  if (d.allocations != d.frees) {
    faults.add(fmt::format("device {}: {} allocations but {} frees", d.device, d.allocations, d.frees));
  }
  const std::uint64_t parts = d.live + d.cached + d.pending + d.free_pages + d.slack + d.retiring;
  if (parts != d.reserved) {
    faults.add(
        fmt::format("device {}: reserved {} bytes are not live {} + cached {} + pending {} + free pages {} + "
                    "slack {} + retiring {} = {}",
                    d.device, d.reserved, d.live, d.cached, d.pending, d.free_pages, d.slack, d.retiring, parts));
  }
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
  const weir::statistics now = r.service().statistics();
  for (const device_statistics& d : now.devices) check_books(d, faults);
  const std::string wrong = r.service().check();
  if (!wrong.empty()) faults.add(fmt::format("the service's own check: {}", wrong));
}

void check_end(rig& r, fault_list& faults) {
  // Memory behind a fence follows when the GPU has passed it, and the background thread may be at work.
  r.service().trim();
  for (int i = 0; i < 200 && reserved(r.service()) != 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    r.service().trim();
  }
  const std::uint64_t kept = reserved(r.service());
  if (kept != 0) faults.add(fmt::format("{} bytes still reserved after a full trim", kept));
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
