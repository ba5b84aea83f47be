#pragma once
// One way through for a device's slow driver calls: the driver serialises them anyway, so threads that queue here lose
// nothing, and who comes second may find that the first one has mapped enough.
//
// It is an optimisation, never a lock: a thread that waited its patience takes the path over from a holder that is
// stopped, and goes on. Whatever is done inside is safe with others inside: every step is a claim of its own.
//
// One word: state (free, held, held with sleepers) and the holder's number, which tells a late leaver that the path is
// no longer his.

#include <atomic>
#include <chrono>
#include <cstdint>

namespace weir::vm {

class maintenance_path {
 public:
  /// Leaves the path when it ends.
  class [[nodiscard]] pass {
   public:
    pass(maintenance_path* path, std::uint32_t holder, bool took_over) noexcept
        : path_(path), holder_(holder), took_over_(took_over) {}
    ~pass() { path_->leave(holder_); }
    pass(const pass&) = delete;
    pass& operator=(const pass&) = delete;

    /// The holder before is still inside: it was not waited for any longer.
    [[nodiscard]] bool took_over() const noexcept { return took_over_; }

   private:
    maintenance_path* path_;
    std::uint32_t holder_;
    bool took_over_;
  };

  /// Waits for the holder at most `patience`. Never fails, never allocates.
  pass enter(std::chrono::nanoseconds patience) noexcept;

  [[nodiscard]] bool busy() const noexcept {
    return state_of(word_.load(std::memory_order_relaxed)) != static_cast<std::uint32_t>(state::free);
  }

 private:
  enum class state : std::uint32_t { free, held, contended };
  static constexpr std::uint32_t state_of(std::uint32_t w) noexcept { return w & 3; }
  static constexpr std::uint32_t holder_of(std::uint32_t w) noexcept { return w >> 2; }
  static constexpr std::uint32_t pack(state s, std::uint32_t holder) noexcept {
    return static_cast<std::uint32_t>(s) | holder << 2;
  }
  void leave(std::uint32_t holder) noexcept;

  std::atomic<std::uint32_t> word_{0};
};

}  // namespace weir::vm
