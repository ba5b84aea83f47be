#pragma once
// Magazines and bins: how blocks move between threads. A magazine is a small array of blocks of one class; a bin is a
// lane's stack of full ones. Magazines are type-stable; empty ones wait on a stack of their own.

#include <atomic>
#include <cstdint>

#include "heap/tagged_stack.hpp"

namespace weir::heap {

struct magazine {
  static constexpr std::uint32_t capacity = 30;

  std::atomic<std::uint32_t> next;
  std::uint32_t count;
  std::uint64_t spare;  // keeps the blocks on their cache lines
  void* blocks[capacity];
};
static_assert(sizeof(magazine) == 256);

/// One head a cache line: bins of different classes do not disturb each other.
struct alignas(64) bin {
  tagged_stack<> full;
  std::atomic<std::uint32_t> blocks;  // in the full magazines; a moment late while one moves
};
static_assert(sizeof(bin) == 64);

/// Hands out empty magazines; lock-free, null when all are in use.
class magazine_pool {
 public:
  static constexpr std::uint32_t most = 1u << 14;

  /// `storage`: `most` zeroed magazines.
  void attach(magazine* storage) noexcept {
    storage_ = storage;
    fresh_.store(0, std::memory_order_relaxed);
  }
  std::uint32_t take() noexcept {
    const std::uint32_t index = empty_.pop(link());
    if (index != tagged_stack<>::none) return index;
    // A refused add leaves the counter above `most`; it cannot wrap in practice (one step a refusal, 2^32 - 2^14).
    if (fresh_.load(std::memory_order_relaxed) >= most) return tagged_stack<>::none;
    const std::uint32_t next = fresh_.fetch_add(1, std::memory_order_relaxed);
    return next < most ? next : tagged_stack<>::none;
  }
  void give(std::uint32_t index) noexcept { empty_.push(index, link()); }
  magazine& operator[](std::uint32_t index) noexcept { return storage_[index]; }

  /// The links of the magazines, for the stacks.
  struct links {
    magazine* storage;
    std::atomic<std::uint32_t>& operator()(std::uint32_t i) const noexcept { return storage[i].next; }
  };
  [[nodiscard]] links link() const noexcept { return {storage_}; }

 private:
  magazine* storage_ = nullptr;
  std::atomic<std::uint32_t> fresh_{0};
  tagged_stack<> empty_;
};

}  // namespace weir::heap
