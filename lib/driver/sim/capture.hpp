#pragma once
// Stream captures. A capture collects what its streams are given; a graph replays it.

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "driver/sim/stream_core.hpp"

namespace weir::sim {

/// What a graph does, in the order in which it was captured. Any order that respects the dependencies is right, and
/// this one does: an operation is captured after all that it depends on.
using graph_nodes = std::vector<operation>;

/// How much of each stream of a capture something comes after.
using capture_clock = std::map<const stream_core*, std::uint64_t>;

class capture {
 public:
  capture(std::uint64_t id, CUstreamCaptureMode mode, std::uint64_t thread, const std::shared_ptr<stream_core>& origin)
      : id_(id), mode_(mode), thread_(thread), origin_(origin.get()) {
    members_[origin.get()].core = origin;
  }

  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
  [[nodiscard]] CUstreamCaptureMode mode() const noexcept { return mode_; }
  [[nodiscard]] std::uint64_t thread() const noexcept { return thread_; }
  [[nodiscard]] const stream_core* origin() const noexcept { return origin_; }

  [[nodiscard]] bool valid() const noexcept { return valid_.load(std::memory_order_acquire); }
  [[nodiscard]] bool ended() const noexcept { return ended_.load(std::memory_order_acquire); }
  void invalidate() noexcept { valid_.store(false, std::memory_order_release); }

  /// Adds work of a stream of this capture.
  void add(const stream_core& on, operation op);
  /// What an event recorded on that stream now comes after.
  capture_clock clock_of(const stream_core& on);
  /// Makes the stream wait for an event of this capture; it joins if it is not yet a member.
  void wait(const std::shared_ptr<stream_core>& on, const capture_clock& event);
  /// Whether every member's work comes before the origin's end.
  bool joined();
  /// Ends it: gives the members and the nodes out.
  graph_nodes end(std::vector<std::shared_ptr<stream_core>>& members);
  /// Whether some member that synchronises with the legacy stream is of that device, or any member of it.
  bool touches(int device, bool blocking_only);

 private:
  struct member {
    std::shared_ptr<stream_core> core;
    std::uint64_t count = 0;  // operations of its own
    capture_clock clock;      // what its next operation comes after, of other members
  };

  const std::uint64_t id_;
  const CUstreamCaptureMode mode_;
  const std::uint64_t thread_;
  const stream_core* const origin_;
  std::atomic<bool> valid_{true};
  std::atomic<bool> ended_{false};
  std::mutex mutex_;
  std::map<const stream_core*, member> members_;
  graph_nodes nodes_;
};

}  // namespace weir::sim
