#pragma once
// What the simulated driver knows of a thread: its contexts, capture mode, default streams, and the kernel it runs.

#include <cuda.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace weir::sim {

class machine_state;
class reservation;
struct context_state;
struct mapping;
struct stream_slot;

inline constexpr unsigned machine_slots = 16;

/// A thread as one machine sees it.
struct thread_view {
  std::uint64_t machine = 0;  // serial number of the machine; another machine in the slot starts afresh
  std::vector<context_state*> contexts;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::uint64_t cost_hint = 0;  // ns that the call in progress takes by its arguments; 0: the table's
  struct default_stream {
    context_state* context = nullptr;
    std::uint64_t context_id = 0;
    stream_slot* slot = nullptr;
  };
  std::vector<default_stream> default_streams;
};

/// The kernel that a thread runs.
struct running_kernel {
  machine_state* machine = nullptr;
  int device = -1;
  std::uint64_t stream_id = 0;
  struct pin {
    std::shared_ptr<reservation> range;
    std::shared_ptr<mapping> what;
  };
  std::vector<pin> pins;
};

struct thread_state {
  std::uint64_t number = 0;  // never reused
  running_kernel* kernel = nullptr;
  std::array<std::unique_ptr<thread_view>, machine_slots> views;
};

/// The calling thread's state. Made on the first call; ends with the thread, after its thread_local destructors.
thread_state& this_thread();

/// Whether this process is a forked child of the one that loaded the library.
bool in_forked_child() noexcept;

}  // namespace weir::sim
