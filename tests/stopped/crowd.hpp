#pragma once
// Threads that allocate and free for ever, without a lock, malloc or driver call of their own: whatever holds them up
// is Weir's. A map of granules sees a block that is given twice.

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>

#include "weir/lane.hpp"

namespace weir::test {

enum class pattern { small, large, mixed, handoff };

class crowd {
 public:
  static constexpr unsigned most_threads = 4;

  /// Starts `threads` threads; each works on `lanes[i]`.
  crowd(pattern what, const std::array<weir::lane, most_threads>& lanes, unsigned threads);
  /// Ends them; they free what they hold. REQUIRES: none is stopped.
  ~crowd();
  crowd(const crowd&) = delete;
  crowd& operator=(const crowd&) = delete;

  [[nodiscard]] unsigned size() const noexcept { return count_; }
  [[nodiscard]] pthread_t thread(unsigned i) { return workers_[i].thread.native_handle(); }
  [[nodiscard]] std::uint64_t done(unsigned i) const noexcept { return workers_[i].done.load(); }

  /// Requests that were not served, and blocks that were given twice.
  [[nodiscard]] std::uint64_t refused() const noexcept { return refused_.load(); }
  [[nodiscard]] std::uint64_t given_twice() const noexcept { return given_twice_.load(); }

 private:
  struct block {
    void* at = nullptr;
    std::size_t bytes = 0;
  };
  // From one thread to one other.
  struct ring {
    static constexpr std::uint32_t places = 16;
    std::array<block, places> blocks;
    std::atomic<std::uint32_t> written{0};
    std::atomic<std::uint32_t> read{0};
    bool put(const block& b) noexcept;
    bool get(block& b) noexcept;
  };
  struct alignas(64) worker {
    weir::lane lane;
    std::thread thread;
    std::atomic<std::uint64_t> done{0};
    ring inbox;
    std::array<block, 48> held;
    std::uint64_t dice = 0;
  };

  void run(unsigned i) noexcept;
  void one_step(worker& w, unsigned i) noexcept;
  block take(worker& w, std::size_t bytes) noexcept;
  void give(worker& w, block& b, bool anywhere) noexcept;
  void mark(const block& b, std::uint8_t from, std::uint8_t to) noexcept;
  [[nodiscard]] std::size_t random_size(worker& w) const noexcept;

  const pattern what_;
  const unsigned count_;
  std::atomic<bool> ends_{false};
  std::atomic<std::uint64_t> refused_{0};
  std::atomic<std::uint64_t> given_twice_{0};
  std::atomic<std::uint8_t>* granules_;
  std::array<worker, most_threads> workers_;
};

}  // namespace weir::test
