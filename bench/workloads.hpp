#pragma once
// The workloads W1 to W4, each registered for every allocator of the environment. Names stand as they are read: no
// suffix is added by the benchmark library, so they take no argument, thread count or clock of its own.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "environment.hpp"
#include "team.hpp"

namespace weir::bench {

void register_batch(environment& env);          // W1
void register_pair(environment& env);           // W2
void register_mixed(environment& env);          // W3
void register_shared_stream(environment& env);  // W3, all threads on one stream
void register_handoff(environment& env);        // W4
void register_metadata(environment& env);       // host memory of Weir's own records

// Thread counts worth measuring on this machine: 1, 2, 4, ... up to its cores, at least to 2.
std::vector<std::size_t> thread_counts();

// Registers under exactly that name.
void register_benchmark(const std::string& name, benchmark::TimeUnit unit,
                        const std::function<void(benchmark::State&)>& run);

class stopwatch {
 public:
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Runs rounds of `work(member, steps)` on the team for as long as the benchmark library asks. One iteration is one step
// of every member. A round is long enough (4 ms) that starting it together and waiting for the last costs nothing.
template <class Work>
void run_rounds(benchmark::State& state, team& crew, std::size_t pairs_a_step, std::size_t& steps, const Work& work) {
  constexpr double long_enough = 0.004;
  const auto round = [&] { return crew.run([&](std::size_t member) { work(member, steps); }); };
  // The best of three: a round that only waited for a core is not long. `steps` is kept from run to run of the same
  // benchmark; this loop also warms up.
  const auto best = [&] { return std::min({round(), round(), round()}); };
  for (double seconds = best(); seconds < long_enough && !crew.failed(); seconds = best()) steps *= 2;
  double seconds = 0;
  double rounds = 0;
  while (!crew.failed() && state.KeepRunningBatch(static_cast<benchmark::IterationCount>(steps))) {
    seconds += round();
    rounds += 1;
  }
  if (crew.failed()) return state.SkipWithError(crew.failure().c_str());
  const double all_steps = rounds * static_cast<double>(steps);
  state.counters["pairs_per_second"] = all_steps * static_cast<double>(pairs_a_step) / seconds;
  state.counters["ns_per_pair"] = seconds / all_steps * 1e9;
}

}  // namespace weir::bench
