#pragma once
// Type-stable nodes for the whole process: reserved once, committed as they are first used, never given back.
// Lock-free, no malloc; a stopped thread holds the node it took.

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "heap/metadata.hpp"
#include "heap/tagged_stack.hpp"

namespace weir::vm {

/// `Node` has an `std::atomic<std::uint32_t> next`; zeroed memory is a valid one.
template <class Node, std::uint32_t Most>
class node_pool {
 public:
  static constexpr std::uint32_t none = heap::tagged_stack<>::none;
  static_assert(Most < none);

  struct links {
    Node* storage;
    std::atomic<std::uint32_t>& operator()(std::uint32_t i) const noexcept { return storage[i].next; }
  };

  /// False: the system refuses memory.
  bool prepare() noexcept {
    if (storage_.load(std::memory_order_acquire) != nullptr) return true;
    void* at = heap::reserve_metadata(sizeof(Node) * Most);
    if (at == nullptr) return false;
    Node* nobody = nullptr;
    if (!storage_.compare_exchange_strong(nobody, static_cast<Node*>(at), std::memory_order_acq_rel)) {
      ::munmap(at, sizeof(Node) * Most);  // another thread was faster
    }
    return true;
  }

  // REQUIRES for all that follow: prepared.

  /// `near`: callers with different numbers seldom meet on one free list. `none` if all are in use.
  std::uint32_t take(std::uint32_t near) noexcept {
    const std::uint32_t own = free_[near % lists].nodes.pop(link());
    if (own != none) return own;
    if (fresh_.load(std::memory_order_relaxed) < Most) {
      const std::uint32_t next = fresh_.fetch_add(1, std::memory_order_relaxed);
      if (next < Most) return next;
    }
    for (auto& other : free_) {
      const std::uint32_t taken = other.nodes.pop(link());
      if (taken != none) return taken;
    }
    return none;
  }
  void give(std::uint32_t index, std::uint32_t near) noexcept { free_[near % lists].nodes.push(index, link()); }

  Node& operator[](std::uint32_t index) noexcept { return storage_.load(std::memory_order_relaxed)[index]; }
  [[nodiscard]] links link() noexcept { return {storage_.load(std::memory_order_relaxed)}; }
  /// Nodes at or above it were never used.
  [[nodiscard]] std::uint32_t extent() const noexcept {
    const std::uint32_t used = fresh_.load(std::memory_order_acquire);
    return used < Most ? used : Most;
  }

 private:
  static constexpr std::uint32_t lists = 16;
  struct alignas(64) list {
    heap::tagged_stack<> nodes;
  };

  std::atomic<Node*> storage_{nullptr};
  std::atomic<std::uint32_t> fresh_{0};
  std::array<list, lists> free_{};
};

}  // namespace weir::vm
