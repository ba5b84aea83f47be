#pragma once
// weir::buffer<T>: a block that frees itself.

#include <cstddef>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>

#include "weir/error.hpp"
#include "weir/lane.hpp"

namespace weir {

/// Owns `size()` elements of device memory, uninitialised, from one lane; movable, not copyable. The elements live on
/// the device: the host may pass `data()` to kernels and copies, never dereference it.
template <class T>
class buffer {
  static_assert(std::is_trivially_copyable_v<T>, "device memory holds trivially copyable types");

 public:
  buffer() noexcept = default;

  /// Throws as `lane::allocate`; a count whose byte size wraps is `out_of_memory`.
  buffer(weir::lane l, std::size_t count) : lane_(std::move(l)), size_(count) {
    constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
    data_ = static_cast<T*>(lane_.allocate(count > most / sizeof(T) ? most : count * sizeof(T), alignment()));
  }
  buffer(buffer&& other) noexcept
      : lane_(std::move(other.lane_)),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  buffer& operator=(buffer&& other) noexcept {
    if (this != &other) {
      reset();
      lane_ = std::move(other.lane_);
      data_ = std::exchange(other.data_, nullptr);
      size_ = std::exchange(other.size_, 0);
    }
    return *this;
  }
  ~buffer() { reset(); }

  /// Frees in the lane's stream order; never throws or blocks.
  void reset() noexcept {
    if (data_ != nullptr) lane_.deallocate(std::exchange(data_, nullptr));
    size_ = 0;
  }
  /// Gives the block up to the caller, who frees it with `weir::deallocate` or a lane.
  [[nodiscard]] T* release() noexcept {
    size_ = 0;
    return std::exchange(data_, nullptr);
  }

  [[nodiscard]] T* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t size_bytes() const noexcept { return size_ * sizeof(T); }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] const weir::lane& lane() const noexcept { return lane_; }

 private:
  static constexpr std::size_t alignment() { return alignof(T) > default_alignment ? alignof(T) : default_alignment; }

  weir::lane lane_;
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace weir
