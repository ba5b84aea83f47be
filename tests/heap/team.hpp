#pragma once
// Threads that start together.

#include <barrier>
#include <cstdint>
#include <thread>
#include <vector>

namespace weir::heap {

// Sanitizers make every step dearer.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr std::uint32_t effort = 1;
#else
inline constexpr std::uint32_t effort = 5;
#endif

/// Runs work(i) on `count` threads and waits for them.
template <class Work>
void in_threads(std::uint32_t count, Work&& work) {
  std::barrier start(count);
  std::vector<std::thread> threads;
  threads.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      work(i);
    });
  }
  for (auto& t : threads) t.join();
}

}  // namespace weir::heap
