#pragma once
// weir::lane: the fast way to allocate. A lane is one device + one stream + one pool; a block of a lane may be used in
// the lane's stream order from the moment `allocate` returns.

#include <cstddef>

#include "weir/export.hpp"
#include "weir/types.hpp"

namespace weir {

namespace service_detail {
class access;
}
class lane_state;

/// A copyable handle. The stream must outlive all copies, or `service::retire(stream)` comes first.
/// All members are safe to call from any thread at any time; a default-made lane is empty and serves nothing.
///
/// Cost (measured, README): a hit in the thread cache about 5 ns: no lock, no atomic read-modify-write, no driver call
/// (C1). What the lane's own memory can serve is lock-free (C2). Growth calls the driver: 20-60 us.
class WEIR_API lane {
 public:
  lane() noexcept = default;
  lane(const lane& other) noexcept;
  lane(lane&& other) noexcept : state_(other.state_), number_(other.number_) {
    other.state_ = nullptr;
    other.number_ = 0;
  }
  lane& operator=(lane other) noexcept;
  ~lane();

  /// At least `bytes` bytes, aligned to `alignment` (a power of two, at most 2 MiB; 256 is always given).
  /// Zero bytes give null. Throws `out_of_memory`; `error` (invalid_argument) for a bad alignment.
  /// The memory may still be read or written by work queued earlier on this lane's stream, as stream order allows.
  [[nodiscard]] void* allocate(std::size_t bytes);
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment);

  /// The same, but null instead of an exception, whatever went wrong.
  [[nodiscard]] void* try_allocate(std::size_t bytes) noexcept;
  [[nodiscard]] void* try_allocate(std::size_t bytes, std::size_t alignment) noexcept;

  /// Frees in this lane's stream order. Total (C4): never allocates, throws, calls the driver or blocks. Null does
  /// nothing. A block of another lane becomes pending until its own lane may use it (C5).
  void deallocate(void* block) noexcept;

  [[nodiscard]] int device() const noexcept;
  [[nodiscard]] stream_t stream() const noexcept;
  [[nodiscard]] explicit operator bool() const noexcept { return state_ != nullptr; }
  friend bool operator==(const lane& a, const lane& b) noexcept { return a.state_ == b.state_; }

 private:
  friend class service_detail::access;
  lane(lane_state* state, std::uint32_t number) noexcept : state_(state), number_(number) {}
  lane_state* state_ = nullptr;
  std::uint32_t number_ = 0;  // of the lane, all that a hit needs; 0: none
};

/// Frees a block of any service in the order of the block's own lane. Total, as `lane::deallocate`; legal in a host
/// callback, during unwinding, in a thread's exit and as a thread's first call.
WEIR_API void deallocate(void* block) noexcept;

}  // namespace weir
