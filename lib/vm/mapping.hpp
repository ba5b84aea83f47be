#pragma once
// Making and ending chunks: the sequences of driver calls, each of which leaves a state that another thread can go on
// from. REQUIRES everywhere: a driver_scope of the lane's device.

#include <cstdint>

#include "vm/device.hpp"
#include "vm/lane.hpp"

namespace weir::vm {

struct made {
  std::uint32_t strides = 0;  // of chunks that were made, from the first stride on: `want`, or at least `need`
  CUresult error = CUDA_SUCCESS;
};

/// Makes chunks of at most `largest` strides at [first, first + want), which the caller claimed and charged. Where the
/// device has no more, `need` strides will do. The chunks are in state mapping and not yet accessible. On failure, and
/// for the strides that are left over, the caller goes on with unmake_chunks.
made make_chunks(lane& l, std::uint32_t first, std::uint32_t need, std::uint32_t want, std::uint32_t largest) noexcept;

/// Undoes it for [first, first + strides), claimed, charged, with chunks in state mapping or without: unmaps, releases,
/// uncharges, frees the strides. A chunk that the driver refuses to take back stays charged and `retiring`.
void unmake_chunks(lane& l, std::uint32_t first, std::uint32_t strides) noexcept;

/// Chunks in state mapping become mapped.
void publish_chunks(lane& l, std::uint32_t first, std::uint32_t strides) noexcept;

/// Ends a chunk that the caller took, whose pages are in no heap and whose order was reached: unmaps, releases,
/// uncharges, frees its strides. If the driver refuses, the chunk is retiring (again). `was`: its word before it was
/// taken, retiring or mapping.
CUresult end_chunk(lane& l, std::uint32_t stride, const chunk_word& was) noexcept;

}  // namespace weir::vm
