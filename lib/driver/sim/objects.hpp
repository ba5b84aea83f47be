#pragma once
// What the simulated driver's handles stand for.

#include <cuda.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "driver/sim/capture.hpp"
#include "driver/sim/physical.hpp"
#include "driver/sim/stream_core.hpp"

namespace weir::sim {

struct device_state;

/// Behind a CUstream. `id` is zero while the handle is dead.
struct stream_slot {
  std::atomic<std::uint64_t> id{0};
  std::atomic<int> device{-1};
  std::mutex mutex;
  std::shared_ptr<stream_core> core;
  unsigned flags = 0;
  int priority = 0;
  std::atomic<bool> is_default{false};  // the legacy stream or a thread's default stream: cannot be destroyed
};

/// Behind a CUevent.
struct event_slot {
  std::mutex mutex;
  bool alive = false;
  unsigned flags = 0;
  int device = -1;
  std::uint64_t context_id = 0;
  std::vector<point> points;             // what the last record covers; empty: reached
  std::shared_ptr<stamp> when;           // of timing events
  std::shared_ptr<capture> captured_in;  // the last record was in a capture
  capture_clock clock;
};

/// Behind a CUgraph and a CUgraphExec.
struct graph_slot {
  std::mutex mutex;
  std::shared_ptr<const graph_nodes> nodes;  // null while the handle is dead
  point last_launch;                         // launches of one executable graph follow one another
};

/// Behind a CUcontext: a device's primary context. The slot outlives the context; `id` is zero while there is none.
struct context_state {
  device_state* device = nullptr;
  std::atomic<std::uint64_t> id{0};
  std::mutex mutex;  // guards the rest
  unsigned references = 0;
  unsigned flags = 0;
  stream_slot legacy;
  std::atomic<bool> legacy_used{false};
  std::vector<std::shared_ptr<stream_core>> cores;  // streams alive, and destroyed ones that are busy
  std::atomic<std::uint64_t> peers{0};              // devices whose plain allocations this one may use
};

/// One simulated GPU.
struct device_state {
  int index = 0;
  std::shared_ptr<backing> memory;
  context_state context;
  std::atomic<int> error{0};  // sticky: a CUresult
  std::mutex busy;            // a call that takes simulated time holds it, as the driver's own lock
};

}  // namespace weir::sim
