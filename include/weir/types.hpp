#pragma once
// The few types that every other header of Weir uses.

#include <cstddef>
#include <cstdint>

// The driver's own handle types: a cudaStream_t or CUstream passes as it is, without a CUDA header.
struct CUstream_st;
struct CUevent_st;

namespace weir {

/// A CUDA stream. Null is the legacy default stream of the device.
using stream_t = CUstream_st*;

/// The legacy default stream and the calling thread's own default stream, as the driver spells them.
inline const stream_t legacy_stream = nullptr;
inline const stream_t per_thread_stream = reinterpret_cast<stream_t>(std::uintptr_t{2});

/// Every block is aligned to this many bytes; larger powers of two up to `max_alignment` on request.
inline constexpr std::size_t default_alignment = 256;
inline constexpr std::size_t max_alignment = std::size_t{2} << 20;

/// Blocks up to this many bytes come from spans of equal blocks (cached per thread); larger ones are runs of pages.
inline constexpr std::size_t max_small_bytes = std::size_t{1} << 20;

}  // namespace weir
