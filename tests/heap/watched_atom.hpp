#pragma once
// An atomic of the user's own: std::atomic's interface, with a hook before every step. Tests step in at a chosen
// instruction of a protocol; a model checker would schedule there.

#include <atomic>
#include <functional>
#include <utility>

namespace weir::heap {

/// Called with the atomic's address before each step of this thread; steps inside the hook are not watched.
inline thread_local std::function<void(const void*)> before_step;

template <class T>
class watched_atom {
 public:
  constexpr watched_atom() noexcept = default;
  constexpr watched_atom(T value) noexcept : value_(value) {}  // NOLINT(google-explicit-constructor): as std::atomic
  watched_atom(const watched_atom&) = delete;
  watched_atom& operator=(const watched_atom&) = delete;

  T load(std::memory_order o = std::memory_order_seq_cst) const noexcept { return step().load(o); }
  void store(T v, std::memory_order o = std::memory_order_seq_cst) noexcept { step().store(v, o); }
  T exchange(T v, std::memory_order o = std::memory_order_seq_cst) noexcept { return step().exchange(v, o); }
  T fetch_add(T v, std::memory_order o = std::memory_order_seq_cst) noexcept { return step().fetch_add(v, o); }
  T fetch_sub(T v, std::memory_order o = std::memory_order_seq_cst) noexcept { return step().fetch_sub(v, o); }
  T fetch_or(T v, std::memory_order o = std::memory_order_seq_cst) noexcept { return step().fetch_or(v, o); }
  T fetch_and(T v, std::memory_order o = std::memory_order_seq_cst) noexcept { return step().fetch_and(v, o); }
  bool compare_exchange_weak(T& e, T v, std::memory_order s, std::memory_order f) noexcept {
    return step().compare_exchange_weak(e, v, s, f);
  }
  bool compare_exchange_strong(T& e, T v, std::memory_order s, std::memory_order f) noexcept {
    return step().compare_exchange_strong(e, v, s, f);
  }

 private:
  std::atomic<T>& step() const noexcept {
    if (before_step) {
      auto hook = std::exchange(before_step, nullptr);
      hook(this);
      // The hook may have ended its watch by leaving another one.
      if (!before_step) before_step = std::move(hook);
    }
    return value_;
  }

  mutable std::atomic<T> value_{};
};

/// Watches the calling thread's steps for a scope.
class watch {
 public:
  explicit watch(std::function<void(const void*)> hook) { before_step = std::move(hook); }
  watch(const watch&) = delete;
  watch& operator=(const watch&) = delete;
  ~watch() { before_step = nullptr; }
};

}  // namespace weir::heap
