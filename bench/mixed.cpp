// W3: every thread keeps 64 live blocks, log-uniform from 256 B to 1 MiB; a step frees one at random and allocates
// another in its place. On streams of their own, or all on one stream.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "random.hpp"
#include "workloads.hpp"

namespace weir::bench {
namespace {

constexpr std::size_t live_blocks = 64;
constexpr std::size_t distinct_sizes = 1024;

const log_uniform_sizes<distinct_sizes>& sizes() {
  static const log_uniform_sizes<distinct_sizes> table(256, 1 << 20);
  return table;
}

struct alignas(128) worker {
  std::array<void*, live_blocks> blocks{};
  std::array<std::uint32_t, live_blocks> bytes{};
  void* context = nullptr;
  generator random{0};

  // One step in the given slot; false when the allocation failed.
  bool renew(const allocator& a, std::size_t slot, std::size_t wanted) {
    if (blocks[slot] != nullptr) a.deallocate(blocks[slot], bytes[slot], context);
    blocks[slot] = a.allocate(wanted, context);
    bytes[slot] = static_cast<std::uint32_t>(wanted);
    return blocks[slot] != nullptr;
  }
  void fill(const allocator& a) {
    for (std::size_t slot = 0; slot < live_blocks; ++slot) renew(a, slot, sizes().at(random.next()));
  }
  void drain(const allocator& a) {
    for (std::size_t slot = 0; slot < live_blocks; ++slot) {
      if (void* block = std::exchange(blocks[slot], nullptr)) a.deallocate(block, bytes[slot], context);
    }
  }
  bool step(const allocator& a, std::size_t steps, const log_uniform_sizes<distinct_sizes>& table) {
    generator local = random;
    bool well = true;
    for (std::size_t i = 0; i < steps; ++i) {
      const std::uint32_t drawn = local.next();
      well = renew(a, drawn % live_blocks, table.at(drawn / live_blocks)) && well;
    }
    random = local;
    return well;
  }
};

void mixed(benchmark::State& state, const allocator& a, std::size_t threads, bool one_stream, std::size_t& steps) {
  std::vector<worker> workers(threads);
  for (std::size_t i = 0; i < threads; ++i) {
    workers[i].context = a.context_of(one_stream ? 0 : i);
    workers[i].random = generator(i + 1);
  }
  const auto& table = sizes();
  team crew(threads, a.thread_init);
  crew.run([&](std::size_t member) { workers[member].fill(a); });
  run_rounds(state, crew, threads, steps, [&](std::size_t member, std::size_t count) {
    if (!workers[member].step(a, count, table)) crew.fail("an allocation failed");
  });
  crew.run([&](std::size_t member) { workers[member].drain(a); });
}

void register_as(environment& env, const char* workload, bool one_stream) {
  for (const std::size_t threads : thread_counts()) {
    for (const allocator& a : env.allocators) {
      const std::string name = std::string(workload) + "/" + a.name + "/threads:" + std::to_string(threads);
      register_benchmark(name, benchmark::kNanosecond,
                         [&a, threads, one_stream, steps = std::make_shared<std::size_t>(8)](benchmark::State& s) {
                           mixed(s, a, threads, one_stream, *steps);
                         });
    }
  }
}

}  // namespace

void register_mixed(environment& env) { register_as(env, "mixed", false); }
void register_shared_stream(environment& env) { register_as(env, "shared_stream", true); }

}  // namespace weir::bench
