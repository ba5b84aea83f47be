#include "vm/mapping.hpp"

#include <algorithm>

namespace weir::vm {

namespace {

constexpr std::uint64_t bytes_of(std::uint32_t strides) { return std::uint64_t{strides} << heap::stride_shift; }

std::uint64_t address_of(const lane& l, std::uint32_t stride) noexcept {
  return l.heap->address_of(stride * heap::pages_per_stride);
}

/// One chunk: created, mapped, recorded as mapping.
CUresult make_chunk(lane& l, std::uint32_t stride, std::uint32_t strides) noexcept {
  device& d = *l.device;
  CUmemGenericAllocationHandle handle = 0;
  const CUresult created = d.create(handle, bytes_of(strides));
  if (created != CUDA_SUCCESS) return created;
  chunk& c = l.memory.chunk_at(stride);
  chunk_word w = c.look();
  w = {chunk_state::mapping, false, 0, strides, w.tag + 1};
  c.handle = handle;
  c.epoch.store(0, std::memory_order_relaxed);
  c.spare = 0;
  const CUresult mapping = d.note(d.api().cuMemMap(address_of(l, stride), bytes_of(strides), 0u, handle, 0u));
  l.memory.mapped_bytes.fetch_add(bytes_of(strides), std::memory_order_relaxed);
  if (mapping == CUDA_SUCCESS) {
    c.set(w);
    return CUDA_SUCCESS;
  }
  // Not mapped, so only the handle is to be ended; its strides and its charge remain the caller's unless that fails.
  if (d.note(d.api().cuMemRelease(handle)) == CUDA_SUCCESS) {
    l.memory.mapped_bytes.fetch_sub(bytes_of(strides), std::memory_order_relaxed);
  } else {
    w.bare = true;
    c.set(w);
  }
  return mapping;
}

}  // namespace

made make_chunks(lane& l, std::uint32_t first, std::uint32_t need, std::uint32_t want, std::uint32_t largest) noexcept {
  std::uint32_t done = 0;
  std::uint32_t goal = want;
  while (done < goal) {
    const std::uint32_t length = std::min(largest, goal - done);
    const CUresult result = make_chunk(l, first + done, length);
    if (result == CUDA_SUCCESS) {
      done += length;
      continue;
    }
    const bool place_free = l.memory.chunk_at(first + done).look().state == chunk_state::unmapped;
    if (result != CUDA_ERROR_OUT_OF_MEMORY || goal == need || !place_free) return {done, result};
    goal = need;  // no memory for a generous step: the need will do
  }
  return {done, CUDA_SUCCESS};
}

void unmake_chunks(lane& l, std::uint32_t first, std::uint32_t strides) noexcept {
  const auto give = [&l](std::uint32_t from, std::uint32_t to) {
    if (from == to) return;
    l.device->uncharge(bytes_of(to - from));
    l.memory.unmapped().release(from, to - from);
  };
  const std::uint32_t end = first + strides;
  std::uint32_t empty = first;  // strides without a chunk since here
  for (std::uint32_t at = first; at < end;) {
    const chunk_word w = l.memory.chunk_at(at).look();
    if (w.state == chunk_state::unmapped) {
      ++at;
      continue;
    }
    give(empty, at);
    end_chunk(l, at, w);
    at += w.strides;
    empty = at;
  }
  give(empty, end);
}

void publish_chunks(lane& l, std::uint32_t first, std::uint32_t strides) noexcept {
  for (std::uint32_t at = first; at < first + strides;) {
    chunk& c = l.memory.chunk_at(at);
    chunk_word w = c.look();
    w.state = chunk_state::mapped;
    c.set(w);
    at += w.strides;
  }
}

CUresult end_chunk(lane& l, std::uint32_t stride, const chunk_word& was) noexcept {
  device& d = *l.device;
  chunk& c = l.memory.chunk_at(stride);
  const std::uint64_t bytes = bytes_of(was.strides);
  const bool counted = was.state == chunk_state::retiring;

  const auto keep = [&](bool bare, CUresult why) {
    if (!counted) {
      l.memory.retiring_bytes.fetch_add(bytes, std::memory_order_relaxed);
      d.retiring.fetch_add(bytes, std::memory_order_relaxed);
    }
    c.epoch.store(0, std::memory_order_relaxed);  // nothing to wait for any more
    c.set({chunk_state::retiring, bare, 0, was.strides, was.tag});
    return why;
  };
  if (d.lost.load(std::memory_order_relaxed)) return keep(was.bare, d.lost_error());
  if (!was.bare) {
    const CUresult unmapped = d.note(d.api().cuMemUnmap(address_of(l, stride), bytes));
    if (unmapped != CUDA_SUCCESS) return keep(false, unmapped);
  }
  const CUresult released = d.note(d.api().cuMemRelease(c.handle));
  if (released != CUDA_SUCCESS) return keep(true, released);

  c.handle = 0;
  l.memory.mapped_bytes.fetch_sub(bytes, std::memory_order_relaxed);
  if (counted) {
    l.memory.retiring_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    d.retiring.fetch_sub(bytes, std::memory_order_relaxed);
  }
  d.uncharge(bytes);
  c.set({chunk_state::unmapped, false, 0, 0, was.tag});
  l.memory.unmapped().release(stride, was.strides);
  return CUDA_SUCCESS;
}

}  // namespace weir::vm
