#pragma once
// Pending memory: freed, and not yet reusable in its own lane's order (C5).

#include <chrono>
#include <cstdint>

#include "vm/device.hpp"
#include "vm/lane.hpp"

namespace weir::vm {

/// Takes a block of another lane that was freed in `freed_in`'s order: lock-free, no driver call, no allocation.
/// REQUIRES: the block's state byte is code_pending (set by the caller). False: no node is free; nothing changed.
bool push_pending(lane& freed_in, std::uint64_t block_address) noexcept;

/// The same for a block with recorded uses, freed in its own or another lane's order: it waits for all its uses and, if
/// freed in another lane, for that lane's order.
bool push_used(lane& freed_in, std::uint64_t block_address) noexcept;

/// Records an event on `stream` now and remembers it for the block; its state byte becomes code_used | live. Nothing
/// changes if the stream is the block's own lane's. A stream that is capturing is refused with
/// CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, an address that is no lane's with CUDA_ERROR_INVALID_VALUE.
CUresult record_use(device& d, std::uint64_t block_base, CUstream stream) noexcept;

/// Seals the order of lanes that may be touched, polls fences, and returns blocks whose fences are reached to their own
/// lanes. Few queries, bounded work, skips past stuck entries, waits for nobody. `inside`: the lane whose stream the
/// caller names right now, or null. Returns the bytes made free.
std::uint64_t collect(device& d, const lane* inside) noexcept;

/// The last step of the ladder: polls, with short sleeps and nothing held, until `bytes` became free, nothing is
/// pending or `deadline` passed. Uses the context fence for lanes that may not be touched, where that is allowed.
std::uint64_t wait_pending(device& d, const lane* inside, std::uint64_t bytes,
                           std::chrono::steady_clock::time_point deadline) noexcept;

struct pending_counts {
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
  std::uint64_t stranded = 0;  // part of bytes: freed in the order of a stream that may not be touched, and unfenced
};
[[nodiscard]] pending_counts pending(const device& d) noexcept;

}  // namespace weir::vm
