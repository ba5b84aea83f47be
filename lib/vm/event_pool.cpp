#include "vm/event_pool.hpp"

namespace weir::vm {

CUresult event_pool::take(CUevent& out) noexcept {
  out = nullptr;
  if (kept_.load(std::memory_order_relaxed) != 0) {
    for (auto& place : shelf_) {
      if (place.load(std::memory_order_relaxed) == nullptr) continue;
      // Acquire: who gave the event is done with it.
      out = place.exchange(nullptr, std::memory_order_acquire);
      if (out == nullptr) continue;
      kept_.fetch_sub(1, std::memory_order_relaxed);
      return CUDA_SUCCESS;
    }
  }
  const CUresult made = driver_->cuEventCreate(&out, CU_EVENT_DISABLE_TIMING);
  if (made == CUDA_SUCCESS) {
    alive_.fetch_add(1, std::memory_order_relaxed);
  } else {
    out = nullptr;
  }
  return made;
}

void event_pool::give(CUevent event) noexcept {
  for (auto& place : shelf_) {
    if (place.load(std::memory_order_relaxed) != nullptr) continue;
    CUevent none = nullptr;
    // Counted first: the number never says none while an event lies here.
    kept_.fetch_add(1, std::memory_order_relaxed);
    if (place.compare_exchange_strong(none, event, std::memory_order_release, std::memory_order_relaxed)) return;
    kept_.fetch_sub(1, std::memory_order_relaxed);
  }
  destroy(event);
}

void event_pool::clear() noexcept {
  for (auto& place : shelf_) {
    if (place.load(std::memory_order_relaxed) == nullptr) continue;
    CUevent event = place.exchange(nullptr, std::memory_order_acquire);
    if (event == nullptr) continue;
    kept_.fetch_sub(1, std::memory_order_relaxed);
    destroy(event);
  }
}

void event_pool::destroy(CUevent event) noexcept {
  // Nothing to be done about a failure: it means that the context is gone, and the event with it.
  driver_->cuEventDestroy(event);
  alive_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace weir::vm
