// Host memory that Weir's records of a device take, where all blocks are as small as they get.

#include <memory>
#include <vector>

#include "weir/lane.hpp"
#include "weir/service.hpp"
#include "weir/statistics.hpp"

#include "workloads.hpp"

namespace weir::bench {
namespace {

constexpr std::size_t block_bytes = 256;
constexpr std::size_t blocks_held = std::size_t{4} << 20;

// A service of its own: what other benchmarks left in the environment's is not counted.
void metadata(benchmark::State& state, environment& env) {
  const std::unique_ptr<weir::service> service = env.another_service();
  weir::lane lane = service->lane(0, env.stream(0));
  std::vector<void*> blocks(blocks_held);
  double metadata = 0;
  double reserved = 0;
  while (state.KeepRunning()) {
    for (void*& block : blocks) block = lane.allocate(block_bytes);
    const weir::device_statistics held = service->statistics().devices.at(0);
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
