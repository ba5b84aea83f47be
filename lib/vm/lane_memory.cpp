#include "vm/lane_memory.hpp"

#include <sys/mman.h>

#include <new>

#include "heap/metadata.hpp"

namespace weir::vm {

namespace {

constexpr std::size_t round_up(std::size_t n) { return (n + 4095) / 4096 * 4096; }

}  // namespace

// One reservation: the fixed records, the bits of the strides, the chunk records.
chunk* lane_memory::chunks_of(records* r) noexcept {
  constexpr std::size_t offset =
      round_up(sizeof(records)) + round_up(stride_map::bits_bytes + stride_map::bounds_bytes);
  return reinterpret_cast<chunk*>(reinterpret_cast<char*>(r) + offset);
}

bool lane_memory::prepare() noexcept {
  if (prepared()) return true;
  constexpr std::size_t bytes = round_up(sizeof(records)) +
                                round_up(stride_map::bits_bytes + stride_map::bounds_bytes) +
                                sizeof(chunk) * stride_map::strides;
  void* at = heap::reserve_metadata(bytes);
  if (at == nullptr) return false;
  auto* mine = new (at) records;
  mine->unmapped.attach(static_cast<char*>(at) + round_up(sizeof(records)));
  records* none = nullptr;
  if (!records_.compare_exchange_strong(none, mine, std::memory_order_acq_rel, std::memory_order_acquire)) {
    ::munmap(at, bytes);  // another thread was faster
  }
  return true;
}

void lane_memory::raise_piece_end(std::uint32_t end) noexcept {
  std::uint32_t seen = piece_end_.load(std::memory_order_relaxed);
  while (seen < end &&
         !piece_end_.compare_exchange_weak(seen, end, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

}  // namespace weir::vm
