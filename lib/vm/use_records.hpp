#pragma once
// Which streams use a block besides its own lane's: events by block, from record_use until the block went home.
//
// Uses of a device are numbered around the record of their event: `before` is drawn ahead of it, `after` read behind
// it. a.after <= b.before says that a was recorded first, so on one stream one answer of the driver serves for many.

#include <atomic>
#include <cstdint>

#include "vm/device.hpp"
#include "vm/node_pool.hpp"

namespace weir::vm {

struct use_node {
  std::atomic<std::uint32_t> next;  // of the same block, or in the pool
  CUevent event;
  std::atomic<vm::device*> device;  // whose stream and event it is; null: the device is gone, nothing to wait for
  std::uint64_t stream;             // its id
  std::atomic<std::uint64_t> before;
  std::atomic<std::uint64_t> after;
  // Of whoever holds the freed block: the sweep that was told not ready, and whether it was told reached.
  std::uint64_t asked_by;
  bool reached;
};

inline constexpr std::uint32_t no_use = heap::tagged_stack<>::none;

/// Makes the records, once for the process. False: the system refuses memory.
bool prepare_uses() noexcept;
use_node& use(std::uint32_t index) noexcept;

/// Takes the uses of a block out of the table: a chain by `next`, or no_use. No driver call, no wait.
std::uint32_t take_uses(std::uint64_t block) noexcept;
/// Ends a use: its event and node are free again. REQUIRES: a driver_scope of its device, if it has one.
void end_use(std::uint32_t index) noexcept;
/// The device ends: its events go back to its pool, and nobody waits for its uses. REQUIRES: its driver_scope.
void forget_uses(device& d) noexcept;

}  // namespace weir::vm
