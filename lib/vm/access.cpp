#include "vm/access.hpp"

#include <chrono>
#include <thread>

#include "vm/lane.hpp"

namespace weir::vm {

namespace {

enum class visit { done, skipped, failed };

/// Sets access on one chunk while nobody can unmap it.
visit widen(device& d, const lane& l, std::uint32_t stride, chunk& c, CUresult& error) noexcept {
  const chunk_word seen = c.look();
  const auto set = [&] {
    error = d.set_access(l.heap->address_of(stride * heap::pages_per_stride),
                         std::uint64_t{seen.strides} << heap::stride_shift);
    return error == CUDA_SUCCESS ? visit::done : visit::failed;
  };
  switch (seen.state) {
    case chunk_state::unmapped:
    case chunk_state::mapping:  // its growth looks at the set again when the chunk is mapped
      return visit::done;
    case chunk_state::taken:
      return visit::skipped;
    case chunk_state::mapped: {
      if (!c.pin()) return visit::skipped;
      const visit result = set();
      c.unpin();
      return result;
    }
    case chunk_state::retiring: {
      // It may come back to its lane. One that is half way out will not.
      if (seen.bare || c.epoch.load(std::memory_order_relaxed) == 0) return visit::done;
      chunk_word mine = seen;
      mine.state = chunk_state::taken;
      if (!c.change(seen, mine)) return visit::skipped;
      const visit result = set();
      c.set(seen);
      return result;
    }
  }
  return visit::done;
}

/// All chunks of all lanes; false: some were in other hands.
bool widen_all(device& d, CUresult& error) noexcept {
  bool all = true;
  d.lanes.each([&](lane& l) {
    if (error != CUDA_SUCCESS || !l.memory.prepared()) return;
    l.memory.each_chunk([&](std::uint32_t at, chunk& c, const chunk_word&) {
      all = widen(d, l, at, c, error) != visit::skipped && all;
      return error == CUDA_SUCCESS;
    });
  });
  return all;
}

}  // namespace

CUresult share_with(device& d, std::uint64_t devices) noexcept {
  if (d.lost.load(std::memory_order_acquire)) return d.lost_error();
  for (int other = 0; other < 64; ++other) {
    if ((devices >> other & 1) == 0 || other == d.ordinal()) continue;
    int possible = 0;
    const CUresult asked = d.api().cuDeviceCanAccessPeer(&possible, other, d.ordinal());
    if (asked != CUDA_SUCCESS) return d.note(asked);
    if (possible == 0) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  }
  // Set first: a growth that this misses sees the wider set (growth looks again after it published its chunks).
  const std::uint64_t added = devices & ~d.access_set.fetch_or(devices, std::memory_order_seq_cst);
  if (added == 0 || d.context() == nullptr) return CUDA_SUCCESS;

  const maintenance_path::pass pass = d.path.enter(d.options().growth_patience);
  const driver_scope scope(d);
  CUresult error = d.note(scope.result());
  // Chunks in other hands are free again in microseconds, unless their thread is stopped.
  bool all = false;
  for (int tries = 0; tries < 200 && error == CUDA_SUCCESS && !all; ++tries) {
    if (tries > 2) std::this_thread::sleep_for(std::chrono::microseconds(200));
    all = widen_all(d, error);
  }
  if (error == CUDA_SUCCESS && !all) error = CUDA_ERROR_NOT_READY;
  if (error != CUDA_SUCCESS) d.access_set.fetch_and(~added, std::memory_order_seq_cst);
  return error;
}

}  // namespace weir::vm
