#pragma once
// How a request is served when the thread cache has nothing: search, growth, and the steps before failure (C11).

#include <cstddef>
#include <cstdint>

#include "coordinator/allocate.hpp"

namespace weir::coordinator {

class ladder {
 public:
  /// REQUIRES: 1 <= bytes <= the device's memory, alignment a power of two up to 2 MiB, l's core alive.
  ladder(lane_state& l, std::size_t bytes, std::size_t alignment) noexcept;

  /// Up the ladder until a block is found or nothing is left to try.
  outcome climb(out_of_memory_report* report) noexcept;

 private:
  void* search(bool thorough) noexcept;
  void* grow() noexcept;
  void* search_and_grow() noexcept;
  void collect() noexcept;
  void* from_own_lane() noexcept;
  void* from_other_lanes() noexcept;
  void* from_pending() noexcept;
  out_of_memory_report describe() noexcept;

  lane_state& lane_;
  device_state& device_;
  const std::size_t bytes_;
  const std::size_t alignment_;
  std::uint32_t cls_;        // heap::class_count: a run
  std::uint32_t pages_ = 0;  // of the run or span
  std::uint32_t page_alignment_ = 1;
  CUresult driver_error_ = CUDA_SUCCESS;
};

}  // namespace weir::coordinator
