#pragma once
// A bounded ring for one producer and one consumer, made in full before it is used: passing a block allocates nothing.
// Both sides publish their progress only every few blocks: what is measured is the allocator, not the cache line that
// two cores pass to and fro.

#include <array>
#include <atomic>
#include <cstddef>

namespace weir::bench {

class ring {
 public:
  static constexpr std::size_t capacity = 256;
  static constexpr std::size_t batch = 16;

  // False when full.
  bool push(void* block) noexcept {
    if (tail_ - seen_head_ == capacity) {
      seen_head_ = published_head_.load(std::memory_order_acquire);
      if (tail_ - seen_head_ == capacity) return false;
    }
    slots_[tail_++ % capacity] = block;
    if (tail_ % batch == 0) flush();
    return true;
  }
  // The producer's last word: what it pushed since the last full batch.
  void flush() noexcept { published_tail_.store(tail_, std::memory_order_release); }

  // False when empty.
  bool pop(void*& block) noexcept {
    if (head_ == seen_tail_) {
      seen_tail_ = published_tail_.load(std::memory_order_acquire);
      if (head_ == seen_tail_) return false;
    }
    block = slots_[head_++ % capacity];
    // An emptied ring is always told, so that a producer that waits for room cannot wait for ever.
    if (head_ % batch == 0 || head_ == seen_tail_) published_head_.store(head_, std::memory_order_release);
    return true;
  }

 private:
  alignas(128) std::atomic<std::size_t> published_tail_{0};
  alignas(128) std::size_t tail_ = 0;  // the producer's own line
  std::size_t seen_head_ = 0;
  alignas(128) std::atomic<std::size_t> published_head_{0};
  alignas(128) std::size_t head_ = 0;  // the consumer's own line
  std::size_t seen_tail_ = 0;
  alignas(128) std::array<void*, capacity> slots_{};
};

}  // namespace weir::bench
