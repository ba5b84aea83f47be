#pragma once
// The record of one pending block.

#include <atomic>
#include <cstdint>

#include "vm/lane.hpp"
#include "vm/node_pool.hpp"

namespace weir::vm {

struct pending_node {
  std::atomic<std::uint32_t> next;
  std::uint32_t uses;                // recorded uses to wait for after the epoch; no_use: none
  std::atomic<std::uint64_t> epoch;  // of the order of the lane it was freed in
  std::uint64_t address;             // the block
  std::uint64_t bytes;
  lane* owner;  // the block's own lane
};

using pending_pool = node_pool<pending_node, 1u << 23>;

/// The process's nodes. Prepared by the first device.
pending_pool& pending_nodes() noexcept;

/// Forgets what is pending in a device that ends; no block goes home. REQUIRES: its driver_scope.
void forget_pending(device& d) noexcept;

}  // namespace weir::vm
