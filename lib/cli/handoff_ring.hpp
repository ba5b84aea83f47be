#pragma once
// A bounded queue between one producing and one consuming thread, without locks: what carries blocks between threads
// must not serialise them more than the allocator does.

#include <array>
#include <atomic>
#include <cstddef>
#include <utility>

namespace weir::cli {

template <class T, std::size_t Capacity>
class handoff_ring {
  static_assert((Capacity & (Capacity - 1)) == 0);

 public:
  /// By the producer; false if it is full.
  bool push(T value) {
    const std::size_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - head_.load(std::memory_order_acquire) == Capacity) return false;
    items_[tail % Capacity] = std::move(value);
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }
  /// By the consumer; false if it is empty.
  bool pop(T& out) {
    const std::size_t head = head_.load(std::memory_order_relaxed);
    if (head == tail_.load(std::memory_order_acquire)) return false;
    out = std::move(items_[head % Capacity]);
    head_.store(head + 1, std::memory_order_release);
    return true;
  }
  /// By the producer: nothing follows.
  void close() { closed_.store(true, std::memory_order_release); }
  /// By the consumer: closed, and all was taken.
  [[nodiscard]] bool drained() const {
    return closed_.load(std::memory_order_acquire) &&
           head_.load(std::memory_order_relaxed) == tail_.load(std::memory_order_acquire);
  }

 private:
  alignas(64) std::atomic<std::size_t> head_{0};
  alignas(64) std::atomic<std::size_t> tail_{0};
  std::atomic<bool> closed_{false};
  alignas(64) std::array<T, Capacity> items_{};
};

}  // namespace weir::cli
