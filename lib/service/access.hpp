#pragma once
// The one door between public handles and what stands behind them.

#include "weir/lane.hpp"
#include "weir/pool.hpp"
#include "weir/service.hpp"

#include "coordinator/core.hpp"

namespace weir::service_detail {

class access {
 public:
  /// A handle more.
  static lane make(lane_state* l) noexcept {
    l->base.handles.fetch_add(1, std::memory_order_acq_rel);
    return lane(l, l->number());
  }
  static pool make(pool_state* p) noexcept {
    p->hold();
    return pool(p);
  }
  static lane_state* state(const lane& l) noexcept { return l.state_; }
  static pool_state* state(const pool& p) noexcept { return p.state_; }
  static coordinator::core& core(const service& s) noexcept;

  /// The pool that `named`, or the thread's innermost scope of this service, or nobody names.
  static pool_state* chosen(coordinator::core& c, const pool& named) noexcept;
  static pool_scope* outer(const pool_scope& s) noexcept { return s.outer_; }
  static const pool& pool_of(const pool_scope& s) noexcept { return s.pool_; }
};

}  // namespace weir::service_detail
