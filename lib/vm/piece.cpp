#include "vm/piece.hpp"

#include <algorithm>
#include <bit>

#include "vm/device.hpp"
#include "vm/lane.hpp"

namespace weir::vm {

namespace {

constexpr std::uint64_t slot_up(std::uint64_t bytes) {
  return (bytes + heap::slot_bytes - 1) >> heap::slot_shift << heap::slot_shift;
}

struct range {
  std::uint64_t reservation = 0;
  std::uint64_t reserved_bytes = 0;
  std::uint64_t base = 0;
};

/// Reserves `bytes` whose usable part begins at a multiple of 4 GiB.
CUresult reserve(device& d, std::uint64_t bytes, range& out) noexcept {
  const driver::api& api = d.api();
  CUdeviceptr at = 0;
  CUresult r = d.note(api.cuMemAddressReserve(&at, bytes, heap::slot_bytes, 0u, 0u));
  if (r != CUDA_SUCCESS) return r;
  out = {at, bytes, at};
  if (at % heap::slot_bytes != 0) {
    // The alignment is a hint to some drivers: take a slot more and use the aligned part.
    api.cuMemAddressFree(at, bytes);
    r = d.note(api.cuMemAddressReserve(&at, bytes + heap::slot_bytes, heap::slot_bytes, 0u, 0u));
    if (r != CUDA_SUCCESS) return r;
    out = {at, bytes + heap::slot_bytes, slot_up(at)};
  }
  if (out.base + bytes > std::uint64_t{1} << 48) {
    api.cuMemAddressFree(out.reservation, out.reserved_bytes);
    return CUDA_ERROR_NOT_SUPPORTED;  // beyond what the range table covers
  }
  return CUDA_SUCCESS;
}

bool enter_heap(lane& l, piece& p) noexcept {
  const std::uint32_t first = l.heap->add_piece(p.base, p.bytes);
  if (first == heap::no_page) return false;
  p.first_page = first;
  p.top.store(p.first_stride(), std::memory_order_relaxed);
  l.memory.unmapped().release(p.first_stride(), p.strides());
  p.state.store(piece_state::live, std::memory_order_release);
  return true;
}

/// The driver gets the addresses of a piece that is in no heap. REQUIRES: the caller took it.
void give_addresses_back(lane& l, piece& p) noexcept {
  device& d = *l.device;
  const std::uint64_t bytes = p.reserved_bytes;
  if (d.note(d.api().cuMemAddressFree(p.reservation, bytes)) != CUDA_SUCCESS) {
    p.state.store(piece_state::leftover, std::memory_order_release);
    return;
  }
  l.memory.address_bytes.fetch_sub(bytes, std::memory_order_relaxed);
  p.state.store(piece_state::none, std::memory_order_release);
}

}  // namespace

CUresult add_piece(lane& l, std::uint32_t pages, piece*& added) noexcept {
  device& d = *l.device;
  lane_memory& memory = l.memory;
  // The last stride stays unmapped.
  const std::uint64_t least = slot_up((std::uint64_t{pages} << heap::page_shift) + heap::stride_bytes);
  const std::uint64_t usual = d.options().piece_size != 0 ? d.options().piece_size : d.capacity();
  std::uint64_t bytes = std::max(least, slot_up(usual));
  if (least > std::uint64_t{heap::lane_slots} << heap::slot_shift) return CUDA_ERROR_OUT_OF_MEMORY;

  piece* p = nullptr;
  for (std::uint32_t i = 0; i < lane_memory::most_pieces && p == nullptr; ++i) {
    piece& here = memory.pieces()[i];
    if (here.take(piece_state::leftover)) {
      if (here.bytes >= least && enter_heap(l, here)) {
        added = &here;
        return CUDA_SUCCESS;
      }
      here.state.store(piece_state::leftover, std::memory_order_release);
    } else if (here.take(piece_state::none)) {
      p = &here;
      memory.raise_piece_end(i + 1);
    }
  }
  if (p == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;

  // Where so many addresses are refused, by the driver or by the lane's own numbers, fewer may do.
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  for (;; bytes = std::max(least, slot_up(bytes / 2))) {
    range r;
    result = reserve(d, bytes, r);
    if (result == CUDA_SUCCESS) {
      p->base = r.base;
      p->bytes = bytes;
      p->reservation = r.reservation;
      p->reserved_bytes = r.reserved_bytes;
      memory.address_bytes.fetch_add(r.reserved_bytes, std::memory_order_relaxed);
      if (enter_heap(l, *p)) {
        added = p;
        return CUDA_SUCCESS;
      }
      give_addresses_back(l, *p);
      if (p->state.load(std::memory_order_relaxed) != piece_state::none || !p->take(piece_state::none)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
      }
      result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (d.lost.load(std::memory_order_relaxed) || bytes == least) break;
  }
  p->state.store(piece_state::none, std::memory_order_release);
  return result;
}

void give_piece_back(lane& l, piece& p) noexcept {
  lane_memory& memory = l.memory;
  if (p.state.load(std::memory_order_acquire) == piece_state::live) {
    // All of its strides claimed: nothing is mapped, and nobody can map anything.
    if (memory.unmapped().count_free(p.first_stride(), p.strides()) != p.strides()) return;
    if (!p.take(piece_state::live)) return;
    if (!memory.unmapped().claim_at(p.first_stride(), p.strides())) {
      p.state.store(piece_state::live, std::memory_order_release);
      return;
    }
    l.heap->remove_piece(p.first_page);
  } else if (!p.take(piece_state::leftover)) {
    return;
  }
  give_addresses_back(l, p);
}

void give_pieces_back(lane& l) noexcept {
  if (!l.memory.prepared()) return;
  for (std::uint32_t i = 0; i < l.memory.piece_end(); ++i) {
    if (l.device->lost.load(std::memory_order_relaxed)) return;
    give_piece_back(l, l.memory.pieces()[i]);
  }
}

}  // namespace weir::vm
