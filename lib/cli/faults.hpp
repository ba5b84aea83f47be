#pragma once
// Collects what went wrong, from all threads.

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace weir::cli {

class fault_list {
 public:
  /// Keeps the text of the first few.
  void add(const std::string& text);

  [[nodiscard]] std::uint64_t count() const noexcept { return count_.load(std::memory_order_acquire); }
  [[nodiscard]] bool any() const noexcept { return count() != 0; }
  [[nodiscard]] std::vector<std::string> texts() const;

 private:
  static constexpr std::size_t most_texts = 16;
  std::atomic<std::uint64_t> count_{0};
  mutable std::mutex mutex_;
  std::vector<std::string> texts_;
};

}  // namespace weir::cli
