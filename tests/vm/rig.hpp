#pragma once
// A simulated machine with one device of Weir's and lanes on it: what every test of this folder begins with.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "weir/simulation.hpp"

#include "vm/device.hpp"
#include "vm/growth.hpp"
#include "vm/lane.hpp"
#include "vm/pending.hpp"
#include "vm/streams.hpp"
#include "vm/trim.hpp"

namespace weir::vm::testing {

inline constexpr std::uint64_t MiB = std::uint64_t{1} << 20;
inline constexpr std::uint64_t GiB = std::uint64_t{1} << 30;
inline constexpr std::uint32_t pages_of_MiB = 16;

/// What the service's lane_state is to vm: a lane first, and a heap that leads to it.
struct lane_rig {
  vm::lane lane;

  lane_rig(vm::device& d, CUstream stream) {
    static std::atomic<std::uint32_t> numbers{1};
    lane.heap = heap::lane_heap::make(numbers.fetch_add(1));
    lane.heap->owner = this;
    lane.device = &d;
    lane.stream = stream;
    CUresult error = CUDA_SUCCESS;
    lane.stream_id = vm::stream_id(d, stream, error);
    lane.handles = 1;
  }

  /// A live run of so many MiB, grown for if need be; 0 if there is none.
  std::uint64_t allocate(std::uint64_t bytes) {
    void* p = lane.heap->take_run(bytes, 256, true);
    if (p == nullptr) {
      const growth_result r = grow(lane, heap::pages_for(bytes), 1);
      if (r.what != growth::done) return 0;
      p = lane.heap->publish_run(r.first_page, heap::pages_for(bytes), bytes);
    }
    return reinterpret_cast<std::uint64_t>(p);
  }
  void free(std::uint64_t address) { ASSERT_TRUE(lane.heap->free_run(*heap::find_slot(address), address)); }

  std::uint64_t free_pages() const { return lane.heap->pages.count_free(); }
};

struct rig {
  std::vector<std::unique_ptr<lane_rig>> lanes;  // outlive the device, as the service's do
  std::unique_ptr<sim::machine> machine;
  std::unique_ptr<vm::device> device;
  std::atomic<int> holds{0};

  explicit rig(sim::machine_config config = {}, settings s = {}) : machine(new sim::machine(std::move(config))) {
    s.trim_holds = &holds;
    machine->table().cuInit(0);
    device = std::make_unique<vm::device>(machine->table(), 0, s);
  }
  lane_rig& lane(CUstream stream) {
    lanes.push_back(std::make_unique<lane_rig>(*device, stream));
    return *lanes.back();
  }
  lane_rig& lane() { return lane(machine->create_stream(0)); }

  std::string faults() const {
    std::string all;
    for (const sim::fault& f : machine->faults()) all += f.text + "\n";
    return all;
  }
};

inline std::uint64_t calls(const rig& r, const char* name) { return r.machine->calls(name); }

}  // namespace weir::vm::testing
