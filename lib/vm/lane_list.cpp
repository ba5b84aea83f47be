#include "vm/lane_list.hpp"

#include <sys/mman.h>

#include "heap/metadata.hpp"
#include "vm/lane.hpp"

namespace weir::vm {

lane_list::lane_list() noexcept
    : lanes_(static_cast<std::atomic<lane*>*>(heap::reserve_metadata(most * sizeof(std::atomic<lane*>)))) {}

lane_list::~lane_list() {
  if (lanes_ != nullptr) ::munmap(static_cast<void*>(lanes_), most * sizeof(std::atomic<lane*>));
}

bool lane_list::add(lane& l) noexcept {
  if (l.registered.load(std::memory_order_acquire) != 0) return true;
  if (lanes_ == nullptr) return false;
  for (std::uint32_t i = 0; i < most; ++i) {
    lane* none = nullptr;
    if (lanes_[i].load(std::memory_order_relaxed) != nullptr ||
        !lanes_[i].compare_exchange_strong(none, &l, std::memory_order_acq_rel, std::memory_order_relaxed)) {
      continue;
    }
    std::uint32_t end = end_.load(std::memory_order_relaxed);
    while (end <= i && !end_.compare_exchange_weak(end, i + 1, std::memory_order_release, std::memory_order_relaxed)) {
    }
    std::uint32_t unlisted = 0;
    if (!l.registered.compare_exchange_strong(unlisted, i + 1, std::memory_order_acq_rel)) {
      lanes_[i].store(nullptr, std::memory_order_release);  // another thread listed it meanwhile
    }
    return true;
  }
  return false;
}

void lane_list::remove(lane& l) noexcept {
  const std::uint32_t at = l.registered.exchange(0, std::memory_order_acq_rel);
  if (at != 0) lanes_[at - 1].store(nullptr, std::memory_order_release);
}

}  // namespace weir::vm
