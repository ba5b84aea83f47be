#include "weir/lane.hpp"

#include <utility>

#include "cache/fast_path.hpp"
#include "coordinator/allocate.hpp"
#include "coordinator/deallocate.hpp"

namespace weir {

lane::lane(const lane& other) noexcept : state_(other.state_), number_(other.number_) {
  // Relaxed: a copy is made from a handle that holds the count above zero.
  if (state_ != nullptr) state_->base.handles.fetch_add(1, std::memory_order_relaxed);
}

lane& lane::operator=(lane other) noexcept {
  std::swap(state_, other.state_);
  std::swap(number_, other.number_);
  return *this;
}

lane::~lane() {
  if (state_ != nullptr) state_->base.handles.fetch_sub(1, std::memory_order_acq_rel);
}

void* lane::allocate(std::size_t bytes) {
  return cache::allocate_hit(number_, bytes,
                             [s = state_, bytes] { return coordinator::allocate(s, bytes, default_alignment); });
}

void* lane::try_allocate(std::size_t bytes) noexcept {
  return cache::allocate_hit(number_, bytes, [s = state_, bytes]() noexcept {
    return coordinator::allocate_or_null(s, bytes, default_alignment);
  });
}

void* lane::allocate(std::size_t bytes, std::size_t alignment) {
  if (alignment == default_alignment) return allocate(bytes);
  return coordinator::allocate(state_, bytes, alignment);
}

void* lane::try_allocate(std::size_t bytes, std::size_t alignment) noexcept {
  if (alignment == default_alignment) return try_allocate(bytes);
  return coordinator::allocate_or_null(state_, bytes, alignment);
}

void lane::deallocate(void* block) noexcept {
  if (cache::deallocate_hit<true>(block, number_)) [[likely]]
    return;
  coordinator::deallocate(block, state_, nullptr);
}

int lane::device() const noexcept {
  const vm::device* d = state_ == nullptr ? nullptr : state_->base.device;
  return d == nullptr ? -1 : d->ordinal();
}

stream_t lane::stream() const noexcept { return state_ == nullptr ? nullptr : state_->base.stream; }

void deallocate(void* block) noexcept {
  if (cache::deallocate_hit<false>(block, cache::own_lane)) [[likely]]
    return;
  coordinator::deallocate(block, nullptr, nullptr);
}

}  // namespace weir
