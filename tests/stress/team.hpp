#pragma once
// Threads that start together, and a map that sees a block given twice.

#include <sys/mman.h>

#include <atomic>
#include <barrier>
#include <cstdint>
#include <functional>
#include <new>
#include <thread>
#include <vector>

namespace weir::test {

// Sanitizers make every step dearer.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr int effort = 1;
#else
inline constexpr int effort = 4;
#endif

/// Runs work(i) on `count` threads at once and waits for them.
template <class Work>
void in_threads(int count, Work&& work) {
  std::barrier start(count);
  std::vector<std::jthread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      work(i);
    });
  }
}

/// Whose each granule is: a byte for each 256 B of 32 GiB of addresses, committed where it is touched. Addresses that
/// are a multiple of 32 GiB apart meet; a test has few enough lanes that theirs do not.
class owners {
 public:
  owners() {
    void* map = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) throw std::bad_alloc();
    granules_ = static_cast<std::atomic<std::uint8_t>*>(map);
  }
  ~owners() { ::munmap(granules_, bytes); }
  owners(const owners&) = delete;
  owners& operator=(const owners&) = delete;

  void take(const void* block, std::size_t size) noexcept { mark(block, size, 0, 1); }
  void give(const void* block, std::size_t size) noexcept { mark(block, size, 1, 0); }
  /// Granules taken while they were taken, or given while they were not.
  [[nodiscard]] std::uint64_t clashes() const noexcept { return clashes_.load(); }

 private:
  static constexpr std::size_t bytes = std::size_t{8} << 24;

  // Blocks up to 64 KiB whole; of larger ones each 64 KiB's first granule and the last.
  void mark(const void* block, std::size_t size, std::uint8_t from, std::uint8_t to) noexcept {
    const auto first = reinterpret_cast<std::uint64_t>(block) >> 8;
    const std::uint64_t last = first + ((size - 1) >> 8);
    const std::uint64_t step = size <= 65536 ? 1 : 256;
    for (std::uint64_t at = first; at <= last; at += step) one(at, from, to);
    if ((last - first) % step != 0) one(last, from, to);
  }
  void one(std::uint64_t granule, std::uint8_t from, std::uint8_t to) noexcept {
    // Relaxed: who hands a block over orders its granules too, or the test has found a fault.
    if (granules_[granule % bytes].exchange(to, std::memory_order_relaxed) != from) clashes_.fetch_add(1);
  }

  std::atomic<std::uint8_t>* granules_;
  std::atomic<std::uint64_t> clashes_{0};
};

}  // namespace weir::test
