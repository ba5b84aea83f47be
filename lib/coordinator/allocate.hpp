#pragma once
// The slow path of an allocation: what the thread cache did not have.
//
//   allocate ─► check ─► search (caches, bins, spans, pages) ─► grow ─► the ladder of C11 ─► report
//
// The ladder, the pool searched again after each step: all caches, bins and spans of the lane; pending frees already
// reached; what other threads hold of it; other lanes' free memory; the user's callback; waiting for pending frees.

#include <cstddef>

#include "weir/error.hpp"

#include "coordinator/core.hpp"

namespace weir::coordinator {

struct outcome {
  void* block = nullptr;
  errc why = errc::out_of_memory;  // where block is null; zero bytes: never read
  CUresult driver = CUDA_SUCCESS;  // of driver_error
};

/// Never throws. Zero bytes: a null block and `driver_error` unset.
outcome try_allocate(lane_state* l, std::size_t bytes, std::size_t alignment, out_of_memory_report* report) noexcept;

/// The same as the public interface has it: throws weir::out_of_memory or weir::error; null for zero bytes.
void* allocate(lane_state* l, std::size_t bytes, std::size_t alignment);

/// Null whatever went wrong.
void* allocate_or_null(lane_state* l, std::size_t bytes, std::size_t alignment) noexcept;

}  // namespace weir::coordinator
