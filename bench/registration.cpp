#include <algorithm>
#include <exception>
#include <thread>

#include "workloads.hpp"

namespace weir::bench {

void register_benchmark([[maybe_unused]] const std::string& name, [[maybe_unused]] benchmark::TimeUnit unit,
                        [[maybe_unused]] const std::function<void(benchmark::State&)>& run) {
#ifndef __clang_analyzer__  // which sees a leak inside the library's own header
  const auto guarded = [run](benchmark::State& state) {
    try {
      run(state);
    } catch (const std::exception& fault) {
      state.SkipWithError(fault.what());  // out of memory, say: the other benchmarks go on
    }
  };
  benchmark::RegisterBenchmark(name.c_str(), guarded)->Unit(unit);
#endif
}

std::vector<std::size_t> thread_counts() {
  const std::size_t cores = std::max(std::thread::hardware_concurrency(), 2U);
  std::vector<std::size_t> counts;
  for (std::size_t n = 1; n < cores; n *= 2) counts.push_back(n);
  counts.push_back(cores);
  return counts;
}

}  // namespace weir::bench
