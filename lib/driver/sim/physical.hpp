#pragma once
// Physical memory: ranges of one sparse file per device or host node. A range takes no host memory until it is touched,
// and none after it is released.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace weir::sim {

/// The memory of one device or host node.
class backing {
 public:
  /// `owner` >= 0: a device; below: host node -1 - owner.
  backing(int owner, std::uint64_t capacity);
  ~backing();
  backing(const backing&) = delete;
  backing& operator=(const backing&) = delete;

  [[nodiscard]] int owner() const noexcept { return owner_; }
  [[nodiscard]] int file() const noexcept { return file_; }
  [[nodiscard]] std::uint64_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::uint64_t used() const noexcept { return used_.load(std::memory_order_acquire); }
  [[nodiscard]] std::uint64_t free() const noexcept;

  /// What other processes hold: counts against the capacity.
  std::atomic<std::uint64_t> others{0};

  /// Takes `bytes` of the capacity, or nothing and false.
  bool charge(std::uint64_t bytes) noexcept;
  void discharge(std::uint64_t bytes) noexcept { used_.fetch_sub(bytes, std::memory_order_acq_rel); }

  /// A fresh range of the file. Never one used before, so stale bytes cannot be read.
  std::uint64_t place(std::uint64_t bytes) noexcept { return next_.fetch_add(bytes, std::memory_order_relaxed); }
  void punch(std::uint64_t offset, std::uint64_t bytes) const noexcept;

 private:
  const int owner_;
  const std::uint64_t capacity_;
  int file_ = -1;
  std::atomic<std::uint64_t> used_{0};
  std::atomic<std::uint64_t> next_{0};
};

/// One physical allocation. It lives while its handle or a mapping of it does.
struct physical {
  static std::shared_ptr<physical> make(const std::shared_ptr<backing>& from, std::uint64_t bytes);
  physical(std::shared_ptr<backing> from, std::uint64_t bytes);
  ~physical();
  physical(const physical&) = delete;
  physical& operator=(const physical&) = delete;

  const std::shared_ptr<backing> home;
  const std::uint64_t bytes;
  const std::uint64_t offset;  // in the file
  unsigned handle_types = 0;   // what it may be exported as
  bool rdma = false;
  std::atomic<bool> touched{false};  // some page of the file may exist
  std::atomic<bool> lost{false};     // its device was reset: mappings lead nowhere
};

}  // namespace weir::sim
