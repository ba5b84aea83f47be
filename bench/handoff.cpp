// W4: a producer allocates blocks of 64 KiB, its consumer, another thread, frees them in the same stream's order.

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "ring.hpp"
#include "workloads.hpp"

namespace weir::bench {
namespace {

constexpr std::size_t block_bytes = std::size_t{64} << 10;

void produce(team& crew, const allocator& a, void* context, ring& to, std::size_t count) {
  bool well = true;
  for (std::size_t i = 0; i < count; ++i) {
    void* block = a.allocate(block_bytes, context);
    well = well && block != nullptr;
    for (patience p; !to.push(block) && !crew.failed();) p.wait();
  }
  to.flush();
  if (!well) crew.fail("an allocation failed");
}

void consume(team& crew, const allocator& a, void* context, ring& from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    void* block = nullptr;
    for (patience p; !from.pop(block);) {
      if (crew.failed()) return;
      p.wait();
    }
    a.deallocate(block, block_bytes, context);
  }
}

// Members 0 to pairs - 1 produce, the others consume.
void handoff(benchmark::State& state, const allocator& a, std::size_t pairs, std::size_t& steps) {
  std::vector<ring> rings(pairs);
  std::vector<void*> contexts;
  for (std::size_t i = 0; i < pairs; ++i) contexts.push_back(a.context_of(i));
  team crew(2 * pairs, a.thread_init);
  run_rounds(state, crew, pairs, steps, [&](std::size_t member, std::size_t count) {
    const std::size_t i = member % pairs;
    if (member < pairs) {
      produce(crew, a, contexts[i], rings[i], count);
    } else {
      consume(crew, a, contexts[i], rings[i], count);
    }
  });
}

}  // namespace

void register_handoff(environment& env) {
  const std::size_t most = std::max<std::size_t>(std::thread::hardware_concurrency() / 2, 1);
  for (std::size_t pairs = 1; pairs <= most; pairs *= 2) {
    for (const allocator& a : env.allocators) {
      const std::string name = "handoff/" + a.name + "/pairs:" + std::to_string(pairs);
      register_benchmark(
          name, benchmark::kNanosecond,
          [&a, pairs, steps = std::make_shared<std::size_t>(8)](benchmark::State& s) { handoff(s, a, pairs, *steps); });
    }
  }
}

}  // namespace weir::bench
