#pragma once
// Slots behind the simulated driver's handles. A slot's memory stays what it is for the machine's life, so a dead
// handle can be looked at without harm and told from a living one.

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <stdexcept>
#include <vector>

namespace weir::sim {

/// Up to `capacity` slots of T, made on first use and never moved. The address of a slot is the handle.
template <class T>
class handle_pool {
 public:
  handle_pool(std::size_t capacity, bool reuse) : capacity_(capacity), reuse_(reuse) {
    void* p =
        mmap(nullptr, capacity * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    base_ = static_cast<T*>(p);
  }
  ~handle_pool() {
    for (std::size_t i = 0; i < made_; ++i) base_[i].~T();
    munmap(base_, capacity_ * sizeof(T));
  }
  handle_pool(const handle_pool&) = delete;
  handle_pool& operator=(const handle_pool&) = delete;

  /// A slot that no living handle has; the one given back last, if slots are reused. Null if all are taken.
  T* take() {
    const std::lock_guard lock(mutex_);
    if (!free_.empty() && (reuse_ || made_ == capacity_)) {
      T* slot = free_.back();
      free_.pop_back();
      return slot;
    }
    if (made_ == capacity_) return nullptr;
    T* slot = new (base_ + made_) T();
    made_.fetch_add(1, std::memory_order_release);
    return slot;
  }

  void give_back(T* slot) {
    const std::lock_guard lock(mutex_);
    free_.push_back(slot);
  }

  /// The slot of a handle, living or dead; null if it never was one. No lock.
  T* find(const void* handle) const noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(handle);
    const auto first = reinterpret_cast<std::uintptr_t>(base_);
    if (at < first || at >= first + made_.load(std::memory_order_acquire) * sizeof(T)) return nullptr;
    return (at - first) % sizeof(T) == 0 ? base_ + (at - first) / sizeof(T) : nullptr;
  }

  /// Calls f for every slot ever made.
  template <class F>
  void each(F f) const {
    const std::size_t count = made_.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < count; ++i) f(base_[i]);
  }

 private:
  T* base_ = nullptr;
  const std::size_t capacity_;
  const bool reuse_;
  std::mutex mutex_;
  std::vector<T*> free_;
  std::atomic<std::size_t> made_{0};
};

}  // namespace weir::sim
