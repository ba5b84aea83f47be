#pragma once
// The order of one lane, as far as the host knows it. Whatever is given up in the lane's order (a pending block, a
// retiring chunk) is stamped with the current epoch. Sealing ends the epoch and records one event, which covers all
// that was stamped before: who read epoch e was past its own work on the stream before the event was recorded. When
// the event is reached, so is every epoch up to its own.
//
// A few events are in flight at most; while none is free, the epoch goes on and its next seal covers it. A thread
// stopped inside costs one place in the ring; a later event of the stream covers what it had sealed.

#include <array>
#include <atomic>
#include <cstdint>

#include "vm/event_pool.hpp"

namespace weir::vm {

class fence_ring {
 public:
  static constexpr std::uint32_t places = 8;

  /// The stamp for what is given up now; then `want` it.
  [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_.load(std::memory_order_seq_cst); }
  /// Says that something waits for `epoch`.
  void want(std::uint64_t epoch) noexcept { raise(wanted_, epoch); }

  [[nodiscard]] bool reached(std::uint64_t epoch) const noexcept {
    return epoch <= reached_.load(std::memory_order_acquire);
  }
  [[nodiscard]] bool sealed(std::uint64_t epoch) const noexcept {
    return epoch <= sealed_.load(std::memory_order_acquire);
  }
  [[nodiscard]] bool needs_seal() const noexcept { return !sealed(wanted_.load(std::memory_order_acquire)); }
  [[nodiscard]] bool in_flight() const noexcept { return in_flight_.load(std::memory_order_relaxed) != 0; }

  enum class outcome { sealed, full, failed };

  /// Ends the epoch with an event that `record(event)` records. On `failed`, `error` says why.
  template <class Record>
  outcome seal(event_pool& events, CUresult& error, Record&& record) noexcept {
    place* p = take_free();
    if (p == nullptr) return outcome::full;
    CUevent event = nullptr;
    error = events.take(event);
    if (error == CUDA_SUCCESS) {
      const std::uint64_t ended = epoch_.fetch_add(1, std::memory_order_seq_cst);
      error = record(event);
      if (error == CUDA_SUCCESS) {
        p->event = event;
        p->epoch = ended;
        raise(sealed_, ended);
        p->state.store(waiting, std::memory_order_release);
        return outcome::sealed;
      }
      events.give(event);
    }
    in_flight_.fetch_sub(1, std::memory_order_relaxed);
    p->state.store(vacant, std::memory_order_release);
    return outcome::failed;
  }

  /// Asks the driver about the oldest event, and further while they are reached; `query(event)` is the driver's answer.
  /// Returns the first answer that is neither reached nor not ready, else success.
  template <class Query>
  CUresult poll(event_pool& events, Query&& query) noexcept {
    for (;;) {
      place* p = take_oldest();
      if (p == nullptr) return CUDA_SUCCESS;
      const CUresult answer = query(p->event);
      if (answer != CUDA_SUCCESS) {
        p->state.store(waiting, std::memory_order_release);
        return answer == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : answer;
      }
      finish(*p, events);
    }
  }

  /// All work of the stream is done: whatever was stamped counts as reached.
  void all_reached(event_pool& events) noexcept;

 private:
  enum place_state : std::uint32_t { vacant, busy, waiting };
  struct place {
    std::atomic<std::uint32_t> state{vacant};
    std::atomic<std::uint64_t> epoch{0};
    CUevent event = nullptr;
  };

  static void raise(std::atomic<std::uint64_t>& to, std::uint64_t value) noexcept {
    std::uint64_t seen = to.load(std::memory_order_relaxed);
    while (seen < value &&
           !to.compare_exchange_weak(seen, value, std::memory_order_acq_rel, std::memory_order_relaxed)) {
    }
  }
  place* take_free() noexcept;
  place* take_oldest() noexcept;
  void finish(place& p, event_pool& events) noexcept;

  std::atomic<std::uint64_t> epoch_{1};
  std::atomic<std::uint64_t> wanted_{0};
  std::atomic<std::uint64_t> sealed_{0};
  std::atomic<std::uint64_t> reached_{0};
  std::atomic<std::uint32_t> in_flight_{0};
  std::array<place, places> ring_{};
};

}  // namespace weir::vm
