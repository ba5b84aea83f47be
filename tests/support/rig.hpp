#pragma once
// A service over a simulated machine, what it was told of, and the checks that every test ends with (C8).

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "weir/simulation.hpp"
#include "weir/weir.hpp"

namespace weir::test {

inline constexpr std::size_t kib = std::size_t{1} << 10;
inline constexpr std::size_t mib = std::size_t{1} << 20;
inline constexpr std::size_t gib = std::size_t{1} << 30;

/// The defaults, simulated, and nothing on stderr.
inline config quiet() {
  config c;
  c.driver = backend::simulated;
  c.log = log_level::off;
  return c;
}

inline sim::machine_config devices(std::size_t count, std::uint64_t memory = 4 * gib) {
  sim::machine_config m;
  m.devices = std::vector<sim::device_config>(count);
  for (sim::device_config& d : m.devices) d.memory = memory;
  return m;
}

struct heard_misuse {
  misuse::kind what;
  const void* address;
  std::string text;
};

/// Asks `holds` every millisecond until it says true or `patience` is over.
template <class Holds>
bool eventually(Holds&& holds, std::chrono::milliseconds patience = std::chrono::seconds(10)) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

inline std::uint64_t sum_of_parts(const device_statistics& d) {
  return d.live + d.cached + d.pending + d.free_pages + d.slack + d.retiring;
}

class rig {
 public:
  explicit rig(const config& c = quiet(), sim::machine_config m = {})
      : machine(std::make_shared<sim::machine>(std::move(m))), before_(machine->live()) {
    open(c);
  }
  /// REQUIRES: the test has freed its blocks. All of `finish`.
  ~rig() { finish(); }
  rig(const rig&) = delete;
  rig& operator=(const rig&) = delete;

  /// A stream that the rig retires and destroys at its end.
  stream_t stream(int device = 0) {
    streams_.emplace_back(device, machine->create_stream(device));
    return streams_.back().second;
  }
  weir::lane lane(int device = 0) { return service->lane(device, stream(device)); }

  /// What was reported since the last call.
  std::vector<heard_misuse> misuses() {
    const std::lock_guard lock(mutex_);
    return std::exchange(misuses_, {});
  }

  device_statistics statistics(int device = 0) const {
    return service->statistics().devices.at(static_cast<std::size_t>(device));
  }

  void synchronize() const {
    for (int d = 0; d < machine->device_count(); ++d) machine->synchronize(d);
  }

  /// The sum of C8, and the driver's count. At a quiet point; the maintenance thread may be at work for a moment.
  void check_books() const {
    std::string wrong;
    EXPECT_TRUE(eventually(
        [&] {
          wrong = fault_in_books();
          return wrong.empty();
        },
        std::chrono::seconds(2)))
        << wrong;
    EXPECT_EQ(service->check(), "");
  }

  /// Gives everything back and expects that nothing is left: no block, handle, mapping, reservation, event, fault.
  void finish() {
    if (service == nullptr) return;
    synchronize();
    service->collect();
    check_books();
    for (const device_statistics& d : service->statistics().devices) {
      EXPECT_EQ(d.live, 0u) << "device " << d.device;
      EXPECT_EQ(d.asked, 0u) << "device " << d.device;
      EXPECT_EQ(d.allocations, d.frees) << "device " << d.device;
    }
    // What was freed in the order of a stream whose last lane handle is gone waits for this.
    for (const auto& [device, stream] : streams_) service->retire(device, stream);
    EXPECT_TRUE(eventually([&] {
      service->trim();
      const sim::live_counts now = machine->live();
      return now.handles == before_.handles && now.reservations == before_.reservations;
    })) << "a full trim left "
        << machine->live().handles << " handles, " << machine->live().reservations << " reservations";
    EXPECT_EQ(machine->live().mappings, before_.mappings);
    for (const device_statistics& d : service->statistics().devices) EXPECT_EQ(sum_of_parts(d), 0u) << d.device;
    close();
  }

  /// Ends the service as it is.
  void close() {
    for (const auto& [device, stream] : streams_) service->retire(device, stream);
    service.reset();
    for (const auto& [device, stream] : streams_) machine->destroy_stream(stream);
    streams_.clear();
    const sim::live_counts left = machine->live();
    EXPECT_EQ(left.handles, before_.handles);
    EXPECT_EQ(left.mappings, before_.mappings);
    EXPECT_EQ(left.reservations, before_.reservations);
    EXPECT_EQ(left.events, before_.events);
    EXPECT_EQ(left.streams, before_.streams);
    EXPECT_EQ(left, before_);
    for (const sim::fault& f : machine->faults()) ADD_FAILURE() << "the simulated driver: " << f.text;
    for (const heard_misuse& m : misuses()) ADD_FAILURE() << "misuse: " << m.text;
  }

  std::shared_ptr<sim::machine> machine;
  std::unique_ptr<weir::service> service;

 private:
  void open(const config& c) {
    service = std::make_unique<weir::service>(c, machine);
    service->on_misuse([this](const misuse& m) {
      const std::lock_guard lock(mutex_);
      misuses_.push_back({m.what, m.address, std::string(m.text)});
    });
  }

  [[nodiscard]] std::string fault_in_books() const {
    for (const device_statistics& d : service->statistics().devices) {
      const std::string where = "device " + std::to_string(d.device) + ": ";
      if (sum_of_parts(d) != d.reserved) {
        return where + "reserved " + std::to_string(d.reserved) + " is not live " + std::to_string(d.live) +
               " + cached " + std::to_string(d.cached) + " + pending " + std::to_string(d.pending) + " + free pages " +
               std::to_string(d.free_pages) + " + slack " + std::to_string(d.slack) + " + retiring " +
               std::to_string(d.retiring);
      }
      if (const std::uint64_t held = machine->reserved_bytes(d.device); held != d.reserved) {
        return where + "reserved " + std::to_string(d.reserved) + ", but the driver counts " + std::to_string(held);
      }
      if (d.asked > d.live) {
        return where + "asked " + std::to_string(d.asked) + " is more than live " + std::to_string(d.live);
      }
    }
    return {};
  }

  const sim::live_counts before_;
  std::vector<std::pair<int, stream_t>> streams_;
  std::mutex mutex_;
  std::vector<heard_misuse> misuses_;
};

}  // namespace weir::test
