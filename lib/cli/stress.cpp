#include "cli/stress.hpp"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "cli/final_checks.hpp"
#include "cli/stress_thread.hpp"

namespace weir::cli {
namespace {

using clock = std::chrono::steady_clock;

std::vector<std::vector<stream_t>> make_streams(const stress_options& o, rig& r) {
  std::vector<std::vector<stream_t>> streams(static_cast<std::size_t>(o.threads));
  for (auto& of_thread : streams) {
    if (o.shared_streams && &of_thread != streams.data()) {
      of_thread = streams.front();
      continue;
    }
    for (int d = 0; d < o.devices; ++d) of_thread.push_back(r.make_stream(d));
  }
  return streams;
}

// Waits until the time is over or a thread has found a fault.
void wait(const stress_options& o, const stress_shared& shared, clock::time_point start) {
  const auto end = start + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(o.seconds));
  while (!shared.faults.any() && !shared.stop.load()) {
    const auto left = end - clock::now();
    if (left <= clock::duration::zero()) return;
    std::this_thread::sleep_for(std::min<clock::duration>(left, std::chrono::milliseconds(20)));
  }
}

void work(const stress_options& o, rig& r, stamper& kernels, fault_list& faults, stress_result& result) {
  granule_map map;
  stress_shared shared{o, r, kernels, map, faults, {}, make_streams(o, r), {}};
  const auto count = static_cast<std::size_t>(o.threads);
  shared.inboxes.reserve(count);
  for (int i = 0; i < o.threads; ++i) shared.inboxes.push_back(std::make_unique<stress_ring>());
  std::vector<std::unique_ptr<stress_thread>> workers;
  workers.reserve(count);
  for (int i = 0; i < o.threads; ++i) workers.push_back(std::make_unique<stress_thread>(shared, i));

  const clock::time_point start = clock::now();
  std::vector<std::thread> threads;
  threads.reserve(workers.size());
  for (const auto& worker : workers) threads.emplace_back([&worker] { worker->run(); });
  wait(o, shared, start);
  shared.stop.store(true);
  for (std::thread& t : threads) t.join();
  result.seconds = std::chrono::duration<double>(clock::now() - start).count();

  for (const auto& worker : workers) {
    result.pairs += worker->pairs();
    result.stamped += worker->stamped();
    result.refused += worker->refused();
    result.latency.add(worker->latency());
  }
  // Queued kernels use the workers' memory: they must be through before it goes, whatever happened.
  r.synchronize();
  if (faults.any()) return;
  const std::uint64_t held = map.held();
  if (held != 0)
    faults.add(fmt::format("{} bytes held by nobody after all blocks were freed", held * granule_map::granule));
}

}  // namespace

stress_result run_stress(const stress_options& options, rig& r, fault_list& faults) {
  stress_result result;
  watch(r, faults);
  {
    const std::unique_ptr<stamper> kernels = make_stamper(r);
    work(options, r, *kernels, faults, result);
  }
  const device_statistics total = r.service().statistics().total();
  result.peak_live = total.live_peak;
  result.peak_reserved = total.reserved_peak;
  // After a fault blocks are still live: what follows would only add noise.
  if (faults.any()) return result;
  check_quiet(r, faults);
  check_end(r, faults);
  return result;
}

}  // namespace weir::cli
