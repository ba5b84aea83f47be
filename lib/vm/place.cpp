#include "vm/place.hpp"

#include <algorithm>

namespace weir::vm {

namespace {

constexpr std::uint32_t per = heap::pages_per_stride;

/// The run in the hole [hole, end); false if it does not fit.
bool fit(const heap::page_heap<>& pages_of, std::uint32_t hole, std::uint32_t end, std::uint32_t pages,
         std::uint32_t alignment, place& out) noexcept {
  const std::uint32_t edge = hole * per;
  const std::uint32_t tail = pages_of.free_below(edge, pages);
  out.start = (edge - tail + alignment - 1) & ~(alignment - 1);
  out.tail = out.start < edge ? edge - out.start : 0;
  out.first_stride = std::max(hole, out.start / per);
  if (out.first_stride >= end) return false;
  out.room = end - out.first_stride;
  // 64 bits: a run may be longer than all page numbers.
  const std::uint64_t stop = std::uint64_t{out.start} + pages;
  const std::uint64_t need = (stop - std::uint64_t{out.first_stride} * per + per - 1) / per;
  out.above = 0;
  if (need > out.room) {
    const std::uint64_t beyond = std::uint64_t{end} * per;
    if (stop > heap::lane_pages) return false;
    out.above = static_cast<std::uint32_t>(stop - beyond);
    if (pages_of.count_free(end * per, out.above) != out.above) return false;
    out.need = out.room;
    return true;
  }
  out.need = static_cast<std::uint32_t>(need);
  return true;
}

}  // namespace

bool find_place(lane& l, std::uint32_t pages, std::uint32_t alignment, place& out) noexcept {
  bool found = false;
  const stride_map& unmapped = l.memory.unmapped();
  for (std::uint32_t i = 0; i < l.memory.piece_end(); ++i) {
    piece& in = l.memory.pieces()[i];
    if (in.state.load(std::memory_order_acquire) != piece_state::live) continue;
    const std::uint32_t end = in.first_stride() + in.strides();
    for (std::uint32_t hole = unmapped.next_unmapped(in.first_stride(), end); hole < end;) {
      const std::uint32_t stop = unmapped.next_used(hole, end);
      place here;
      here.in = &in;
      if (fit(l.heap->pages, hole, stop, pages, alignment, here) && (!found || here.need < out.need)) {
        out = here;
        found = true;
      }
      hole = unmapped.next_unmapped(stop, end);
    }
  }
  return found;
}

bool claim_place(lane& l, const place& p, std::uint32_t strides) noexcept {
  if (!l.memory.unmapped().claim_at(p.first_stride, strides)) return false;
  heap::page_heap<>& pages = l.heap->pages;
  if (p.tail == 0 || pages.claim_at(p.start, p.tail)) {
    if (p.above == 0 || pages.claim_at((p.first_stride + p.room) * per, p.above)) return true;
    if (p.tail != 0) pages.release(p.start, p.tail);
  }
  l.memory.unmapped().release(p.first_stride, strides);
  return false;
}

void release_place(lane& l, const place& p, std::uint32_t strides) noexcept {
  if (p.tail != 0) l.heap->pages.release(p.start, p.tail);
  if (p.above != 0) l.heap->pages.release((p.first_stride + p.room) * per, p.above);
  if (strides != 0) l.memory.unmapped().release(p.first_stride, strides);
}

}  // namespace weir::vm
