#include "weir/pool.hpp"

#include <utility>

#include "service/access.hpp"

namespace weir {

namespace {
constinit thread_local pool_scope* innermost = nullptr;
}

pool::pool(const pool& other) noexcept : state_(other.state_) {
  if (state_ != nullptr) state_->hold();
}

pool& pool::operator=(pool other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

pool::~pool() {
  if (state_ != nullptr) state_->drop();
}

const char* pool::name() const noexcept { return state_ == nullptr ? "default" : state_->text.c_str(); }

pool_scope::pool_scope(const pool& p) noexcept : pool_(p), outer_(innermost) { innermost = this; }
pool_scope::~pool_scope() { innermost = outer_; }

namespace service_detail {

pool_state* access::chosen(coordinator::core& c, const pool& named) noexcept {
  if (named.state_ != nullptr) return named.state_;
  // Scopes of other services say nothing about this one.
  for (const pool_scope* s = innermost; s != nullptr; s = outer(*s)) {
    pool_state* p = pool_of(*s).state_;
    if (p != nullptr && p->owner.load(std::memory_order_relaxed) == &c) return p;
  }
  return c.default_pool;
}

}  // namespace service_detail

}  // namespace weir
