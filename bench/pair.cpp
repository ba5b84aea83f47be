// W2: the hot pair, allocate and free at once, one thread. One iteration is one pair.

#include <string>

#include "workloads.hpp"

namespace weir::bench {
namespace {

void pair(benchmark::State& state, const allocator& a, std::size_t bytes) {
  if (a.thread_init != nullptr) a.thread_init();
  void* context = a.context_of(0);
  bool well = true;
  for (int i = 0; i < 64; ++i) {
    void* block = a.allocate(bytes, context);
    well = well && block != nullptr;
    a.deallocate(block, bytes, context);
  }
  if (!well) return state.SkipWithError("an allocation failed");
  const stopwatch watch;
  for (auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores)
    void* block = a.allocate(bytes, context);
    a.deallocate(block, bytes, context);
  }
  const double seconds = watch.seconds();
  const double pairs = static_cast<double>(state.iterations());
  state.counters["pairs_per_second"] = pairs / seconds;
  state.counters["ns_per_pair"] = seconds / pairs * 1e9;
}

}  // namespace

void register_pair(environment& env) {
  for (const std::size_t bytes : {std::size_t{512}, std::size_t{64} << 10, std::size_t{4} << 20}) {
    for (const allocator& a : env.allocators) {
      register_benchmark("pair/" + a.name + "/" + std::to_string(bytes), benchmark::kNanosecond,
                         [&a, bytes](benchmark::State& s) { pair(s, a, bytes); });
    }
  }
}

}  // namespace weir::bench
