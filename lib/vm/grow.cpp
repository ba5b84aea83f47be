#include <algorithm>

#include "vm/chunk_size.hpp"
#include "vm/growth.hpp"
#include "vm/mapping.hpp"
#include "vm/place.hpp"
#include "vm/trim.hpp"

namespace weir::vm {

namespace {

constexpr std::uint32_t per = heap::pages_per_stride;
constexpr std::uint64_t bytes_of(std::uint32_t strides) { return std::uint64_t{strides} << heap::stride_shift; }

growth_result done(std::uint32_t page) { return {growth::done, page, CUDA_SUCCESS}; }
growth_result failure(CUresult why) {
  return {why == CUDA_ERROR_OUT_OF_MEMORY ? growth::out_of_memory : growth::failed, heap::no_page, why};
}

enum class step { done, failed, lost_race };

/// Maps what the run at `p` lacks. On failure everything is as before.
step fill(lane& l, const place& p, std::uint32_t pages, CUresult& error) noexcept {
  device& d = *l.device;
  const std::uint64_t configured = d.options().chunk_size;
  const std::uint32_t largest = chunk_strides(std::uint64_t{pages} << heap::page_shift, d.reserved(), configured);

  // A generous step where there is room for it, the exact need where there is not (case B69).
  const std::uint32_t least = configured != 0 ? largest : usual_chunk_strides;
  std::uint32_t want = std::min(p.room, std::max(p.need, least));
  if (!d.affords(bytes_of(want))) want = p.need;
  if (!claim_place(l, p, want)) {
    want = p.need;
    if (!claim_place(l, p, want)) return step::lost_race;
  }
  if (!d.charge(bytes_of(want))) {
    if (want > p.need) l.memory.unmapped().release(p.first_stride + p.need, want - p.need);
    want = p.need;
    if (!d.charge(bytes_of(want))) {
      release_place(l, p, want);
      error = CUDA_ERROR_OUT_OF_MEMORY;
      return step::failed;
    }
  }

  p.in->raise_top(p.first_stride + want);
  const made m = make_chunks(l, p.first_stride, p.need, want, largest);
  error = m.error;
  if (error == CUDA_SUCCESS) {
    if (m.strides < want) unmake_chunks(l, p.first_stride + m.strides, want - m.strides);
    want = m.strides;
    const std::uint64_t address = l.heap->address_of(p.first_stride * per);
    // Once more if a peer joined meanwhile: whoever widens the set leaves chunks that are not yet mapped to us. Both
    // sides change the set, so one of them comes second and sees the other's step.
    std::uint64_t set = 0;
    do {
      set = d.access_set.load(std::memory_order_relaxed);
      error = d.set_access(address, bytes_of(want));
      if (error == CUDA_SUCCESS) publish_chunks(l, p.first_stride, want);
    } while (error == CUDA_SUCCESS && set != d.access_set.fetch_or(0, std::memory_order_acq_rel));
  }
  if (error != CUDA_SUCCESS) {
    unmake_chunks(l, p.first_stride, want);
    release_place(l, p, 0);
    return step::failed;
  }

  // What the run does not need is free from now on.
  const std::uint32_t low = p.first_stride * per;
  const std::uint32_t high = (p.first_stride + want) * per;
  if (p.start > low) l.heap->pages.release(low, p.start - low);
  if (p.start + pages < high) l.heap->pages.release(p.start + pages, high - (p.start + pages));
  return step::done;
}

growth_result extend(lane& l, std::uint32_t pages, std::uint32_t alignment) noexcept {
  device& d = *l.device;
  piece* fresh = nullptr;
  for (;;) {
    CUresult error = CUDA_SUCCESS;
    place p;
    if (!find_place(l, pages, alignment, p)) {
      // No addresses are reserved for a request that could not be charged.
      error = d.affords(bytes_of((pages + per - 1) / per)) ? add_piece(l, pages, fresh) : CUDA_ERROR_OUT_OF_MEMORY;
      if (error != CUDA_SUCCESS) return failure(error);
      continue;
    }
    switch (fill(l, p, pages, error)) {
      case step::done:
        return done(p.start);
      case step::failed:
        if (fresh != nullptr) give_piece_back(l, *fresh);
        return failure(error);
      case step::lost_race:
        break;
    }
    // Another thread went ahead; perhaps it left enough.
    const std::uint32_t page = l.heap->pages.claim(pages, alignment);
    if (page != heap::no_page) return done(page);
  }
}

}  // namespace

growth_result grow(lane& l, std::uint32_t pages, std::uint32_t alignment) noexcept {
  device& d = *l.device;
  if (d.lost.load(std::memory_order_acquire)) return failure(d.lost_error());
  if (pages > heap::lane_pages || std::uint64_t{pages} << heap::page_shift > d.capacity()) {
    return failure(CUDA_ERROR_OUT_OF_MEMORY);
  }
  const maintenance_path::pass pass = d.path.enter(d.options().growth_patience);

  // Who went before may have mapped enough, or memory on its way out may be taken back: no driver call.
  std::uint32_t page = l.heap->pages.claim(pages, alignment);
  if (page == heap::no_page) {
    reclaim_retiring(l);
    page = l.heap->pages.claim_thoroughly(pages, alignment, 4);
  }
  if (page != heap::no_page) return done(page);

  if (!l.memory.prepare() || !d.lanes.add(l)) return failure(CUDA_ERROR_OUT_OF_MEMORY);
  const CUresult context = d.ensure_context();
  if (context != CUDA_SUCCESS) return failure(context);
  const driver_scope scope(d);
  if (scope.result() != CUDA_SUCCESS) return failure(d.note(scope.result()));

  growth_result result = extend(l, pages, alignment);
  if (result.what == growth::out_of_memory && finish_retiring_inside(d) != 0) result = extend(l, pages, alignment);
  return result;
}

}  // namespace weir::vm
