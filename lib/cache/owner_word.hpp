#pragma once
// Who may touch a lane cache: one word and one flag decide, and neither side ever waits.
//
//   state      who works in the cache
//   owned      its thread
//   asked      its thread; somebody wants what it holds
//   taken      the taker, which empties it
//   drained    nobody: the taker is done; its thread makes it owned again
//   abandoned  the taker; its thread found it taken and left it for a fresh one
//
// The thread marks `in_use` with a plain store around its work and reads the word. A taker asks (the number in the word
// counts up at every ask), makes all threads pass a barrier, and takes only if the thread is not inside: a thread that
// comes in later has seen the ask. The thread that sees "asked" makes it owned again by compare-and-swap; if it lost,
// it drops the cache. A flag without the number fails (m_take).
//
// Where the barrier system call is refused, takers only ask and threads hand in at their next call. Under tsan, which
// does not know the barrier, both sides use sequentially consistent accesses instead.

#include <atomic>
#include <cstdint>

#if defined(__SANITIZE_THREAD__)
#define WEIR_CACHE_SEQ_CST 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEIR_CACHE_SEQ_CST 1
#endif
#endif
#ifndef WEIR_CACHE_SEQ_CST
#define WEIR_CACHE_SEQ_CST 0
#endif

namespace weir::cache {

enum class owner_state : std::uint8_t { owned, asked, taken, drained, abandoned };

template <template <class> class Atom = std::atomic, bool SeqCst = WEIR_CACHE_SEQ_CST != 0>
class owner_word {
 public:
  static constexpr std::uint64_t state_mask = 0x7;
  static constexpr std::uint64_t capture_flag = 0x8;  // a capture is announced: every call takes the slow path
  static constexpr std::uint64_t one_ask = 0x10;

  static constexpr owner_state state_of(std::uint64_t w) noexcept { return static_cast<owner_state>(w & state_mask); }

  // --- the owner ---

  /// Before working in the cache. False: not owned, or something was asked: `leave`, then the slow path.
  bool enter() noexcept {
    if constexpr (SeqCst) {
      in_use_.store(1, std::memory_order_seq_cst);
      return (word_.load(std::memory_order_seq_cst) & (state_mask | capture_flag)) == 0;
    } else {
      in_use_.store(1, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);  // the taker's barrier orders the processor
#if defined(__x86_64__) && defined(__GCC_ASM_FLAG_OUTPUTS__)
      // The next line's load and test as one instruction; on x86 every load is an acquire.
      bool busy;
      __asm__ volatile("testb %2, %1" : "=@ccnz"(busy) : "m"(word_), "i"(state_mask | capture_flag) : "memory");
      return !busy;
#else
      return (word_.load(std::memory_order_acquire) & (state_mask | capture_flag)) == 0;  // pairs with (2)
#endif
    }
  }
  /// (1) release: what was done inside; pairs with the taker's acquire in `idle`.
  void leave() noexcept { in_use_.store(0, std::memory_order_release); }

  /// Inside, after `enter` said no: true if the cache is the owner's (again). `was_asked` tells of an ask, `captured`
  /// of an announced capture.
  bool reclaim(bool& was_asked, bool& captured) noexcept {
    std::uint64_t w = word_.load(std::memory_order_acquire);
    for (;;) {
      captured = (w & capture_flag) != 0;
      was_asked = state_of(w) == owner_state::asked;
      switch (state_of(w)) {
        case owner_state::owned:
          return true;
        case owner_state::asked:
        case owner_state::drained:
          if (word_.compare_exchange_weak(w, w & ~state_mask, std::memory_order_acq_rel, std::memory_order_acquire)) {
            return true;
          }
          break;
        case owner_state::taken:
          if (word_.compare_exchange_weak(w, with(w, owner_state::abandoned), std::memory_order_acq_rel,
                                          std::memory_order_acquire)) {
            return false;
          }
          break;
        case owner_state::abandoned:
          return false;
      }
    }
  }

  // --- a taker ---

  /// Asks. 0 if there is nothing to ask for (not owned); else the ask, for `take`.
  std::uint64_t ask() noexcept {
    std::uint64_t w = word_.load(std::memory_order_relaxed);
    while (state_of(w) == owner_state::owned || state_of(w) == owner_state::asked) {
      const std::uint64_t asked = with(w, owner_state::asked) + one_ask;
      if (word_.compare_exchange_weak(w, asked, std::memory_order_seq_cst, std::memory_order_relaxed)) return asked;
    }
    return 0;
  }
  /// After the barrier: takes the cache if its thread is outside and this ask is the last one.
  bool take(std::uint64_t asked) noexcept {
    if (!idle()) return false;
    for (std::uint64_t w = asked;;) {
      if (word_.compare_exchange_weak(w, with(w, owner_state::taken), std::memory_order_acq_rel,
                                      std::memory_order_relaxed)) {
        return true;
      }
      if ((w | capture_flag) != (asked | capture_flag)) return false;
    }
  }
  /// The taker is done. True: the thread has abandoned the cache, which now is the taker's to recycle.
  bool finish() noexcept {
    std::uint64_t w = word_.load(std::memory_order_acquire);
    while (state_of(w) == owner_state::taken) {
      // (2) release: the emptied cache; pairs with the owner's acquire
      if (word_.compare_exchange_weak(w, with(w, owner_state::drained), std::memory_order_acq_rel,
                                      std::memory_order_acquire)) {
        return false;
      }
    }
    return true;
  }

  void set_captured(bool on) noexcept {
    if (on) {
      word_.fetch_or(capture_flag, std::memory_order_seq_cst);
    } else {
      word_.fetch_and(~capture_flag, std::memory_order_seq_cst);
    }
  }

  /// A recycled cache starts over as its new thread's own; the number goes on.
  void reset(bool captured) noexcept {
    const std::uint64_t w = word_.load(std::memory_order_relaxed);
    word_.store((w & ~(state_mask | capture_flag)) + one_ask + (captured ? capture_flag : 0),
                std::memory_order_release);
    in_use_.store(0, std::memory_order_relaxed);
  }

  [[nodiscard]] owner_state state() const noexcept { return state_of(word_.load(std::memory_order_acquire)); }

 private:
  [[nodiscard]] bool idle() const noexcept {
    return in_use_.load(SeqCst ? std::memory_order_seq_cst : std::memory_order_acquire) == 0;
  }
  static constexpr std::uint64_t with(std::uint64_t w, owner_state s) noexcept {
    return (w & ~state_mask) | static_cast<std::uint64_t>(s);
  }

  Atom<std::uint64_t> word_{0};
  Atom<std::uint32_t> in_use_{0};
};

}  // namespace weir::cache
