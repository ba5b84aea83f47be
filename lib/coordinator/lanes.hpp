#pragma once
// Which lane a stream and a pool have.

#include <cstdint>

#include "coordinator/core.hpp"

namespace weir::coordinator {

/// Identities at or above it stand for streams that could not be asked. The driver's own count up from one.
inline constexpr std::uint64_t unnamed_streams = std::uint64_t{1} << 63;

/// The lane of a stream known by its identity, or null. Lock-free; may miss one that is being moved.
lane_state* find_lane(core& c, const device_state& d, std::uint64_t stream_id, const pool_state* pool) noexcept;

/// The same, made if need be; null if host memory or lane numbers ran out.
lane_state* find_or_make_lane(core& c, device_state& d, CUstream stream, std::uint64_t stream_id,
                              pool_state* pool) noexcept;

/// The lane of a stream that the caller names; null and the driver's error, or no error where host memory or lane
/// numbers ran out. A stream that is capturing cannot tell its identity: it is then known by its handle, which is good
/// while it captures.
lane_state* lane_of_stream(core& c, device_state& d, CUstream stream, pool_state* pool, CUresult& error) noexcept;

/// Takes a retired lane out of the table: a later stream of the same identity cannot exist, but its pool's chain stays
/// short.
void unlist_lane(core& c, lane_state& l) noexcept;

/// Ends a retired lane if nothing of it is left: its stream is gone, so nobody names it any more. Its number serves
/// again after drain_limbo.
void end_if_empty(core& c, lane_state& l) noexcept;
/// Gives the records of ended lanes back, if nobody is walking. REQUIRES: the caller is not walking.
void drain_limbo(core& c) noexcept;

/// Ends a lane whose heap is empty: its number can serve another. REQUIRES: unlisted, released by vm, nobody uses it.
void end_lane(lane_state& l) noexcept;

/// Frees cached in threads and bins and free spans of the lane become free pages. Bytes of caches taken.
std::uint64_t gather(lane_state& l) noexcept;

}  // namespace weir::coordinator
