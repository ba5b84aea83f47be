#pragma once
// Where a run goes that needs more mapped pages: in a hole of unmapped strides, together with the free pages just below
// it, or just above if the hole is short.

#include <cstdint>

#include "vm/lane.hpp"

namespace weir::vm {

struct place {
  piece* in = nullptr;
  std::uint32_t start = 0;         // first page of the run
  std::uint32_t tail = 0;          // its pages below the hole, free now
  std::uint32_t first_stride = 0;  // to be mapped
  std::uint32_t need = 0;          // strides that the run needs
  std::uint32_t room = 0;          // strides of the hole
  std::uint32_t above = 0;         // its pages beyond the hole, free now
};

/// The place that needs the fewest strides, the lowest of these. Looks only; the caller claims.
bool find_place(lane& l, std::uint32_t pages, std::uint32_t alignment, place& out) noexcept;

/// Claims the strides [first_stride, first_stride + strides) and the free pages of the run. All or nothing.
bool claim_place(lane& l, const place& p, std::uint32_t strides) noexcept;
/// Gives them back.
void release_place(lane& l, const place& p, std::uint32_t strides) noexcept;

}  // namespace weir::vm
