#include "cli/stress_thread.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <thread>

#include "cli/errors.hpp"

namespace weir::cli {
namespace {

using clock = std::chrono::steady_clock;
constexpr std::uint64_t measured_every = 16;  // blocks: clock reads on all would be a fifth of the time
constexpr unsigned most_at_once = 16;
constexpr std::uint64_t stuck_in_a_lane = std::uint64_t{32} << 20;

std::uint32_t since(clock::time_point start) {
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(clock::now() - start).count();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(ns, 1, UINT32_MAX));
}

// Sizes whose logarithm is spread evenly; taken from a table, as the exponential costs more than an allocation.
std::vector<std::uint64_t> size_table(const stress_options& o, random_source& random) {
  constexpr std::size_t count = 4096;
  std::vector<std::uint64_t> sizes(count);
  const double low = std::log2(static_cast<double>(o.smallest));
  const double high = std::log2(static_cast<double>(o.largest));
  for (std::size_t i = 0; i < count; ++i) {
    const bool rare = i % 256 == 0 && o.rare > o.largest;
    const double from = rare ? high : low;
    const double to = rare ? std::log2(static_cast<double>(o.rare)) : high;
    sizes[i] = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::exp2(from + random.unit() * (to - from))));
  }
  return sizes;
}

}  // namespace

stress_thread::stress_thread(stress_shared& shared, int number)
    : shared_(shared),
      number_(number),
      random_(shared.options.seed * 1000003 + static_cast<std::uint64_t>(number)),
      sizes_(size_table(shared.options, random_)),
      places_(static_cast<std::size_t>(shared.options.devices)),
      stamp_every_(shared.options.stamp_every) {
  // A pair alone on its stream needs a launch of its own; the other patterns share one among many blocks.
  if (stamp_every_ == 0) stamp_every_ = shared.options.pattern == stress_pattern::pair ? 32 : 1;
  const auto next = static_cast<std::size_t>((number + 1) % shared.options.threads);
  for (int d = 0; d < shared.options.devices; ++d) {
    place& at = places_[static_cast<std::size_t>(d)];
    const stream_t own = shared.streams[static_cast<std::size_t>(number)][static_cast<std::size_t>(d)];
    const stream_t other = shared.streams[next][static_cast<std::size_t>(d)];
    at.lane = shared.machine.service().lane(d, own);
    at.queue = std::make_unique<stamp_queue>(shared.machine, shared.kernels, d, own);
    if (other != own) at.side = std::make_unique<stamp_queue>(shared.machine, shared.kernels, d, other);
  }
}

std::uint64_t stress_thread::random_size() { return sizes_[random_.next() % sizes_.size()]; }

stress_thread::place& stress_thread::pick_place() {
  // Mostly the thread's own device, as in a trainer; now and then another.
  const auto count = static_cast<std::uint64_t>(places_.size());
  const auto home = static_cast<std::uint64_t>(number_) % count;
  return places_[random_.one_in(4) ? random_.below(count) : home];
}

bool stress_thread::allocate(place& at, stress_block& out) {
  out = {};
  out.bytes = random_size();
  out.device = at.lane.device();
  const bool measured = ++steps_ % measured_every == 0;
  const clock::time_point start = measured ? clock::now() : clock::time_point{};
  out.address = at.lane.try_allocate(out.bytes);
  if (measured) out.allocate_ns = since(start);
  if (out.address == nullptr) return false;
  const auto address = reinterpret_cast<std::uint64_t>(out.address);
  if (address % default_alignment != 0) {
    throw fault_error(
        fmt::format("device {}: block {:#x} is not aligned to {} bytes", out.device, address, default_alignment));
  }
  const std::uint64_t taken = shared_.map.claim(out.address, out.bytes);
  if (taken != 0) {
    throw fault_error(fmt::format("device {}: block {:#x} of {} bytes overlaps a live block at {:#x}", out.device,
                                  address, out.bytes, taken));
  }
  if (steps_ % stamp_every_ == 0) {
    out.stamp = (static_cast<std::uint64_t>(number_ + 1) << 48) + (++stamps_ << 16);
    at.queue->write(out.address, out.bytes, out.stamp);
  }
  return true;
}

// Refusing is right only where most of the device is really taken: by live blocks, or by the partly used chunks of as
// many lanes as there are, which no other lane can have.
void stress_thread::check_refusal(const place& at, std::uint64_t bytes) {
  ++refused_;
  const int device = at.lane.device();
  const device_statistics now = shared_.machine.service().statistics().devices.at(static_cast<std::size_t>(device));
  const std::uint64_t memory = shared_.machine.service().info(device).memory;
  const auto lanes = static_cast<std::uint64_t>(shared_.options.shared_streams ? 1 : shared_.options.threads);
  if (now.live + bytes + lanes * stuck_in_a_lane < memory / 2) {
    throw fault_error(
        fmt::format("device {}: {} bytes refused with {} of {} bytes live", device, bytes, now.live, memory));
  }
}

void stress_thread::make_room(place& at, std::uint64_t bytes) {
  check_refusal(at, bytes);
  replace(at, 0);
}

void stress_thread::free(place& at, const stress_block& block) {
  const std::uint64_t lost = shared_.map.release(block.address, block.bytes);
  if (lost != 0) {
    throw fault_error(fmt::format("device {}: {:#x} in live block {:#x} was freed by somebody else", block.device, lost,
                                  reinterpret_cast<std::uint64_t>(block.address)));
  }
  if (block.allocate_ns != 0) {
    const clock::time_point start = clock::now();
    at.lane.deallocate(block.address);
    latency_.add(std::uint64_t{block.allocate_ns} + since(start));
  } else {
    at.lane.deallocate(block.address);
  }
  ++pairs_;
  if (block.stamp != 0) ++stamped_;
}

// Another stream reads the block last, so the free must wait for it (C5).
void stress_thread::use_aside(place& at, const stress_block& block) {
  at.queue->flush();
  at.side->wait_for(at.queue->last_launch());
  at.side->verify(block.address, block.bytes, block.stamp);
  at.side->flush();
  shared_.machine.service().record_use(block.address, at.side->stream());
}

// Frees `count` random blocks (0: half of them) after one kernel that checks them all, then allocates as many.
void stress_thread::replace(place& at, unsigned count) {
  const std::size_t going = count == 0 ? (at.live.size() + 1) / 2 : std::min<std::size_t>(count, at.live.size());
  const std::size_t kept = at.live.size() - going;
  for (std::size_t i = at.live.size(); i > kept; --i) {
    std::swap(at.live[random_.below(i)], at.live[i - 1]);
    const stress_block& block = at.live[i - 1];
    if (block.stamp == 0) continue;
    if (at.side != nullptr && random_.one_in(64)) {
      use_aside(at, block);
    } else {
      at.queue->verify(block.address, block.bytes, block.stamp);
    }
  }
  at.queue->flush();
  for (std::size_t i = kept; i < kept + going; ++i) free(at, at.live[i]);
  at.live.resize(kept);
  for (unsigned i = 0; i < count; ++i) {
    stress_block block;
    if (allocate(at, block)) {
      at.live.push_back(block);
    } else {
      make_room(at, block.bytes);
    }
  }
}

void stress_thread::work_mixed() {
  const std::uint64_t target = std::max<std::uint64_t>(1, shared_.options.live / places_.size());
  while (!stopping()) {
    place& at = pick_place();
    // A trainer's phases: now and then much is freed at once.
    if (random_.one_in(1024)) replace(at, 0);
    while (at.live.size() < target && !stopping()) {
      stress_block block;
      if (allocate(at, block)) {
        at.live.push_back(block);
      } else {
        make_room(at, block.bytes);
        break;
      }
    }
    replace(at, 1 + static_cast<unsigned>(random_.below(most_at_once)));
  }
}

void stress_thread::work_pair() {
  while (!stopping()) {
    place& at = pick_place();
    for (unsigned i = 0; i < most_at_once; ++i) {
      stress_block block;
      if (!allocate(at, block)) {
        make_room(at, block.bytes);
        continue;
      }
      if (block.stamp != 0) {
        at.queue->verify(block.address, block.bytes, block.stamp);
        at.queue->flush();
      }
      free(at, block);
    }
  }
}

bool stress_thread::send(place& at) {
  stress_parcel parcel;
  parcel.device = at.lane.device();
  while (parcel.count < parcel.blocks.size()) {
    stress_block& block = parcel.blocks[parcel.count];
    if (!allocate(at, block)) {
      check_refusal(at, block.bytes);
      break;
    }
    ++parcel.count;
  }
  if (parcel.count == 0) return false;
  at.queue->flush();
  parcel.written = at.queue->last_launch();
  const auto next = static_cast<std::size_t>((number_ + 1) % shared_.options.threads);
  while (!shared_.inboxes[next]->push(parcel)) {
    // Full: do the own part meanwhile, or a ring of full threads would stand still.
    if (!receive()) std::this_thread::yield();
    if (shared_.faults.any()) throw fault_error("stopped by another thread's fault");
  }
  return true;
}

bool stress_thread::receive() {
  stress_parcel parcel;
  if (!shared_.inboxes[static_cast<std::size_t>(number_)]->pop(parcel)) return false;
  place& at = places_[static_cast<std::size_t>(parcel.device)];
  at.queue->wait_for(parcel.written);
  for (unsigned i = 0; i < parcel.count; ++i) {
    const stress_block& block = parcel.blocks[i];
    if (block.stamp != 0) at.queue->verify(block.address, block.bytes, block.stamp);
  }
  at.queue->flush();
  for (unsigned i = 0; i < parcel.count; ++i) free(at, parcel.blocks[i]);
  return true;
}

void stress_thread::work_handoff() {
  const auto next = static_cast<std::size_t>((number_ + 1) % shared_.options.threads);
  stress_ring& inbox = *shared_.inboxes[static_cast<std::size_t>(number_)];
  while (!stopping()) {
    send(pick_place());
    receive();
  }
  shared_.inboxes[next]->close();
  while (!inbox.drained() && !shared_.faults.any()) {
    if (!receive()) std::this_thread::yield();
  }
}

void stress_thread::free_all() {
  for (place& at : places_) {
    while (!at.live.empty()) replace(at, 0);
  }
  for (place& at : places_) {
    at.queue->finish();
    if (at.side != nullptr) at.side->finish();
  }
}

void stress_thread::run() noexcept {
  try {
    switch (shared_.options.pattern) {
      case stress_pattern::mixed:
        work_mixed();
        break;
      case stress_pattern::pair:
        work_pair();
        break;
      case stress_pattern::handoff:
        work_handoff();
        break;
    }
    free_all();
  } catch (const std::exception& fault) {
    // A thread that stops because another one found something has nothing of its own to say.
    if (!shared_.faults.any()) shared_.faults.add(fmt::format("thread {}: {}", number_, fault.what()));
    shared_.stop.store(true);
  }
}

}  // namespace weir::cli
