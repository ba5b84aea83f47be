#pragma once
// What vm knows of a lane. Embedded in the service's lane_state as its first member (heap->owner leads there);
// type-stable: a lane that ended is used again for another one, once it holds nothing.

#include <array>
#include <atomic>
#include <cstdint>

#include "heap/lane_heap.hpp"
#include "heap/tagged_stack.hpp"
#include "vm/fence_ring.hpp"
#include "vm/lane_memory.hpp"

namespace weir::vm {

class device;

/// Blocks freed in a lane's order that may not go home yet, by epoch; nodes of pending_nodes.hpp.
struct outbox {
  static constexpr std::uint32_t boxes = fence_ring::places;
  struct box {
    heap::tagged_stack<> nodes;
    std::atomic<std::uint64_t> bytes{0};
    std::atomic<std::uint64_t> epoch{0};  // newest in it
  };
  std::array<box, boxes> of{};
  std::atomic<std::uint64_t> waiting{0};  // nodes in all boxes
};

struct lane {
  heap::lane_heap* heap = nullptr;
  vm::device* device = nullptr;
  CUstream stream = nullptr;
  std::uint64_t stream_id = 0;
  bool per_thread_default = false;  // handle CU_STREAM_PER_THREAD: means another stream in each thread
  std::atomic<std::uint32_t> handles{
      0};                            // live weir::lane handles: the stream may be touched from outside while > 0 ...
  std::atomic<bool> retired{false};  // ... and not retired

  lane_memory memory;
  fence_ring order;
  vm::outbox outbox;

  // What is pending of this lane's own blocks, wherever it was freed.
  std::atomic<std::uint64_t> pending_bytes{0};
  std::atomic<std::uint64_t> pending_blocks{0};

  std::atomic<std::uint32_t> registered{0};  // place in the device's list of lanes, plus one; 0: not listed

  /// The lane's stream may be touched in a call that does not name it.
  [[nodiscard]] bool may_touch() const noexcept {
    return !per_thread_default && handles.load(std::memory_order_acquire) != 0 &&
           !retired.load(std::memory_order_acquire);
  }
};

/// The lane of a heap.
inline lane* lane_of(const heap::lane_heap& h) noexcept { return static_cast<lane*>(h.owner); }

}  // namespace weir::vm
