#pragma once
// A lock-free stack of indexed nodes (Treiber's, with a tag against ABA).
//
// Use it for nodes that are type-stable and few per operation (magazines, spans, nodes): a contended pop costs
// hundreds of nanoseconds, so never for single blocks. Progress: lock-free. Head: 24-bit index + 40-bit tag; every
// removal advances the tag, take-all included, so a sleeping popper's compare-and-swap fails (ConcurrencyKit's rule).
// At 50 M removals a second a tag wraps after 6 hours.

#include <atomic>
#include <cstdint>

namespace weir::heap {

template <template <class> class Atom = std::atomic>
class tagged_stack {
 public:
  static constexpr std::uint32_t none = 0xffffff;
  using link = Atom<std::uint32_t>;

  constexpr tagged_stack() noexcept : head_(none) {}

  /// `next(i)` gives the link of node i.
  template <class Next>
  void push(std::uint32_t index, Next&& next) noexcept {
    push_chain(index, index, next);
  }

  /// Pushes a private chain: first -> ... -> last.
  template <class Next>
  void push_chain(std::uint32_t first, std::uint32_t last, Next&& next) noexcept {
    std::uint64_t head = head_.load(std::memory_order_relaxed);
    do {
      next(last).store(index_of(head), std::memory_order_relaxed);
      // (1) release: the node's content and link; pairs with the acquire in (2) and (3).
    } while (!head_.compare_exchange_weak(head, (head & ~index_mask) | first, std::memory_order_release,
                                          std::memory_order_relaxed));
  }

  /// The top node, or none. Its link may be read after it was popped by another: nodes are type-stable, and the tag
  /// makes the compare-and-swap fail then.
  template <class Next>
  std::uint32_t pop(Next&& next) noexcept {
    std::uint64_t head = head_.load(std::memory_order_acquire);  // (2) pairs with (1)
    for (;;) {
      const std::uint32_t top = index_of(head);
      if (top == none) return none;
      const std::uint32_t below = next(top).load(std::memory_order_relaxed);
      if (head_.compare_exchange_weak(head, advance(head) | below, std::memory_order_acquire,
                                      std::memory_order_acquire)) {
        return top;
      }
    }
  }

  /// Takes the whole chain; walk it with the links until none.
  std::uint32_t take_all() noexcept {
    std::uint64_t head = head_.load(std::memory_order_relaxed);
    while (index_of(head) != none) {
      // (3) acquire: pairs with (1)
      if (head_.compare_exchange_weak(head, advance(head) | none, std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
        return index_of(head);
      }
    }
    return none;
  }

  [[nodiscard]] std::uint32_t top() const noexcept { return index_of(head_.load(std::memory_order_acquire)); }
  [[nodiscard]] bool empty() const noexcept { return top() == none; }

 private:
  static constexpr std::uint64_t index_mask = 0xffffff;
  static constexpr std::uint32_t index_of(std::uint64_t head) { return static_cast<std::uint32_t>(head & index_mask); }
  static constexpr std::uint64_t advance(std::uint64_t head) { return (head & ~index_mask) + index_mask + 1; }

  Atom<std::uint64_t> head_;
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace weir::heap
