// W1: many blocks allocated, then all freed; a warm round first. Two parts: 1000 blocks of 1 MiB, and 500 blocks of
// mixed sizes, log-uniform from 1 KiB to 64 MiB.

#include <algorithm>
#include <string>
#include <vector>

#include "random.hpp"
#include "workloads.hpp"

namespace weir::bench {
namespace {

struct part {
  std::string name;
  std::vector<std::size_t> sizes;
  std::vector<double> allocate_ms = {};
  std::vector<double> both_ms = {};

  // False when an allocation failed; what was allocated is freed all the same.
  bool run(const allocator& a, void* context) {
    std::vector<void*> blocks(sizes.size());
    const stopwatch watch;
    for (std::size_t i = 0; i < sizes.size(); ++i) blocks[i] = a.allocate(sizes[i], context);
    const double allocated = watch.seconds();
    for (std::size_t i = 0; i < sizes.size(); ++i) a.deallocate(blocks[i], sizes[i], context);
    const double freed = watch.seconds();
    allocate_ms.push_back(allocated * 1e3);
    both_ms.push_back(freed * 1e3);
    return std::find(blocks.begin(), blocks.end(), nullptr) == blocks.end();
  }
};

std::vector<part> make_parts() {
  const log_uniform_sizes<4096> table(1 << 10, 64 << 20);
  generator random(1);
  part even{"1000x1mb", std::vector<std::size_t>(1000, 1 << 20)};
  part mixed{"500_mixed", std::vector<std::size_t>(500)};
  for (std::size_t& bytes : mixed.sizes) bytes = table.at(random.next());
  return {std::move(even), std::move(mixed)};
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// One iteration is both parts; the counters are the parts' medians over the iterations.
void batch(benchmark::State& state, const allocator& a) {
  if (a.thread_init != nullptr) a.thread_init();
  void* context = a.context_of(0);
  std::vector<part> parts = make_parts();
  bool well = true;
  for (part& p : parts) {
    well = p.run(a, context) && well;
    p.allocate_ms.clear();
    p.both_ms.clear();
  }
  while (well && state.KeepRunning()) {
    for (part& p : parts) well = p.run(a, context) && well;
  }
  if (!well) return state.SkipWithError("an allocation failed");
  for (part& p : parts) {
    state.counters["alloc_" + p.name + "_ms"] = median(p.allocate_ms);
    state.counters["alloc_free_" + p.name + "_ms"] = median(p.both_ms);
  }
}

}  // namespace

void register_batch(environment& env) {
  for (const allocator& a : env.allocators) {
    register_benchmark("batch/" + a.name, benchmark::kMillisecond, [&a](benchmark::State& s) { batch(s, a); });
  }
}

}  // namespace weir::bench
