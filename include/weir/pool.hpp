#pragma once
// Pools keep memory of different purposes apart: lanes of different pools never share chunks, spans or caches.

#include <string>

#include "weir/export.hpp"

namespace weir {

namespace service_detail {
class access;
}
class pool_state;
class service;

/// A copyable handle to a pool of one service; a default-made one means the service's default pool.
/// The pool lives until its last handle is gone; its memory then goes back when its last block is freed.
class WEIR_API pool {
 public:
  pool() noexcept = default;
  pool(const pool& other) noexcept;
  pool(pool&& other) noexcept : state_(other.state_) { other.state_ = nullptr; }
  pool& operator=(pool other) noexcept;
  ~pool();

  [[nodiscard]] const char* name() const noexcept;
  friend bool operator==(const pool& a, const pool& b) noexcept { return a.state_ == b.state_; }

 private:
  friend class service_detail::access;
  explicit pool(pool_state* state) noexcept : state_(state) {}
  pool_state* state_ = nullptr;
};

/// While it lives, the calling thread's raw-stream allocations from `p`'s service, and the lanes that the thread asks
/// for without naming a pool, belong to `p`. Scopes nest; other threads see nothing of it. Must end on its own thread.
class WEIR_API pool_scope {
 public:
  explicit pool_scope(const pool& p) noexcept;
  ~pool_scope();
  pool_scope(const pool_scope&) = delete;
  pool_scope& operator=(const pool_scope&) = delete;

 private:
  pool pool_;
  pool_scope* outer_;
  friend class service_detail::access;
};

}  // namespace weir
