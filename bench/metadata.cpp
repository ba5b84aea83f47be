// Host memory that Weir's records of a device take, where all blocks are as small as they get.

#include <vector>

#include "weir/lane.hpp"
#include "weir/service.hpp"
#include "weir/statistics.hpp"

#include "workloads.hpp"

namespace weir::bench {
namespace {

constexpr std::size_t block_bytes = 256;
constexpr std::size_t blocks_held = std::size_t{2} << 20;

// A lane and a service of the environment's; what earlier benchmarks left is given back first, as far as it goes.
void metadata(benchmark::State& state, environment& env) {
  weir::service& service = env.service();
  weir::lane lane = service.lane(0, env.stream(0));
  std::vector<void*> blocks(blocks_held);
  double metadata = 0;
  double reserved = 0;
  while (state.KeepRunning()) {
    service.trim(0);
    for (void*& block : blocks) block = lane.allocate(block_bytes);
    const weir::device_statistics held = service.statistics().devices.at(0);
    metadata = static_cast<double>(held.metadata);
    reserved = static_cast<double>(held.reserved);
    for (void* block : blocks) lane.deallocate(block);
  }
  state.counters["metadata_bytes"] = metadata;
  state.counters["reserved_bytes"] = reserved;
  state.counters["metadata_share"] = metadata / reserved;
}

}  // namespace

void register_metadata(environment& env) {
  register_benchmark("metadata/weir/256", benchmark::kMillisecond, [&env](benchmark::State& s) { metadata(s, env); });
}

}  // namespace weir::bench
