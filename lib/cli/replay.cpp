#include "cli/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "cli/errors.hpp"
#include "cli/final_checks.hpp"
#include "cli/progress.hpp"
#include "cli/replay_cost.hpp"
#include "cli/replay_touch.hpp"

namespace weir::cli {
namespace {

using clock = std::chrono::steady_clock;

rig_options options_for(const trace& t, const replay_options& o) {
  rig_options out;
  out.config = o.config;
  out.devices = 1;
  out.simulated_costs = true;
  out.simulated_sleep = o.sim_delay ? 1.0 : 0.0;
  const std::uint64_t peak = t.peak_requested * o.copies;
  // Simulated memory costs nothing until it is touched: room enough for any allocator's waste.
  constexpr std::uint64_t gib = std::uint64_t{1} << 30;
  out.config.simulated_memory = std::max<std::uint64_t>(144 * gib, (2 * peak / gib + 1) * gib);
  if (o.limit.bytes != 0 || o.limit.times_peak > 0) out.config.limit = o.limit.of(peak);
  return out;
}

class replayer {
 public:
  replayer(const trace& t, const replay_options& o, rig& r);

  /// One replay of the whole trace; what is live at its end is freed.
  replay_run run(unsigned number);

 private:
  // Events are replayed in stretches; between them the clock stands still while the books are read.
  template <bool Touch>
  void stretch(std::size_t first, std::size_t last);
  template <bool Touch>
  void step(std::size_t event);
  void free_rest();
  void read_books(replay_run& into) const;

  const trace& trace_;
  const replay_options& options_;
  rig& rig_;
  std::vector<weir::lane> lanes_;  // copies x streams
  std::vector<void*> blocks_;      // copies x blocks
  std::unique_ptr<block_toucher> toucher_;
  std::uint64_t peak_before_ = 0;  // the service's reserved peak when the run began
};

replayer::replayer(const trace& t, const replay_options& o, rig& r)
    : trace_(t), options_(o), rig_(r), blocks_(t.blocks * o.copies) {
  std::vector<stream_t> streams;
  for (std::size_t i = 0; i < t.streams * o.copies; ++i) {
    streams.push_back(r.make_stream(0));
    lanes_.push_back(r.service().lane(0, streams.back()));
  }
  if (o.touch) toucher_ = std::make_unique<block_toucher>(r, streams, blocks_.size());
}

template <bool Touch>
void replayer::step(std::size_t event) {
  const trace_event& e = trace_.events[event];
  for (std::size_t c = 0; c < options_.copies; ++c) {
    const std::size_t stream = c * trace_.streams + e.stream;
    const std::size_t block = c * trace_.blocks + e.block;
    void*& address = blocks_[block];
    if (e.allocate) {
      address = lanes_[stream].allocate(e.bytes);
      if constexpr (Touch) toucher_->allocated(block, address, e.bytes, stream);
    } else {
      if constexpr (Touch) toucher_->freeing(block, address, e.bytes, stream);
      lanes_[stream].deallocate(address);
      address = nullptr;
    }
  }
}

template <bool Touch>
void replayer::stretch(std::size_t first, std::size_t last) {
  std::size_t at = first;
  try {
    for (; at < last; ++at) step<Touch>(at);
  } catch (const weir::out_of_memory& e) {
    throw fault_error(fmt::format("{}: {}", trace_.place(at), e.what()));
  } catch (const fault_error& e) {
    throw fault_error(fmt::format("{}: {}", trace_.place(at), e.what()));
  }
}

void replayer::read_books(replay_run& into) const {
  const device_statistics now = rig_.service().statistics().devices.at(0);
  // The library's peak is of its whole life: it is this run's only if the run raised it.
  const std::uint64_t peak = now.reserved_peak > peak_before_ ? now.reserved_peak : now.reserved;
  into.peak_reserved = std::max({into.peak_reserved, peak, now.reserved});
  into.metadata_bytes = std::max(into.metadata_bytes, now.metadata);
  into.addresses = now.addresses;
}

void replayer::free_rest() {
  if (trace_.live_at_end == 0) return;
  std::vector<const trace_event*> births(trace_.blocks);
  for (const trace_event& e : trace_.events) {
    if (e.allocate) births[e.block] = &e;
  }
  for (std::size_t block = 0; block < blocks_.size(); ++block) {
    if (blocks_[block] == nullptr) continue;
    const trace_event& e = *births[block % trace_.blocks];
    const std::size_t stream = block / trace_.blocks * trace_.streams + e.stream;
    if (toucher_ != nullptr) toucher_->freeing(block, blocks_[block], e.bytes, stream);
    lanes_[stream].deallocate(blocks_[block]);
    blocks_[block] = nullptr;
  }
}

replay_run replayer::run(unsigned number) {
  constexpr std::size_t stretches = 64;
  const std::size_t events = trace_.events.size();
  replay_run out;
  out.events = events * options_.copies;
  out.peak_requested = trace_.peak_requested * options_.copies;
  peak_before_ = rig_.service().statistics().devices.at(0).reserved_peak;
  progress bar(fmt::format("{} {}/{}", trace_.path, number + 1, options_.repeat), events, options_.progress);
  const cost_meter meter(rig_);
  clock::duration spent{};
  for (std::size_t i = 0; i < stretches; ++i) {
    const std::size_t first = events * i / stretches;
    const std::size_t last = events * (i + 1) / stretches;
    const clock::time_point start = clock::now();
    if (toucher_ != nullptr) {
      stretch<true>(first, last);
    } else {
      stretch<false>(first, last);
    }
    spent += clock::now() - start;
    read_books(out);
    bar.at(last);
  }
  const double host_seconds = meter.read().host_seconds;
  out.seconds = std::max(0.0, std::chrono::duration<double>(spent).count() - host_seconds);
  free_rest();
  if (toucher_ != nullptr) toucher_->finish();
  rig_.synchronize();
  const driver_cost cost = meter.read();
  out.driver_calls = cost.calls;
  out.driver_seconds = cost.seconds;
  return out;
}

}  // namespace

replay_result replay(const trace& t, const replay_options& options) {
  replay_result out;
  out.trace = t.path;
  fault_list faults;
  rig r(options_for(t, options));
  out.simulated = r.simulated();
  watch(r, faults);
  try {
    replayer player(t, options, r);
    for (unsigned i = 0; i < options.repeat && !faults.any(); ++i) out.runs.push_back(player.run(i));
  } catch (const fault_error& e) {
    faults.add(e.what());
  }
  // After a fault blocks are still live: what follows would only add noise.
  if (!faults.any()) check_quiet(r, faults);
  if (!faults.any()) check_end(r, faults);
  out.faults = faults.texts();
  return out;
}

}  // namespace weir::cli
