// Gates: what the host opens and streams wait for.

#include <utility>

#include "driver/sim/stream_core.hpp"

namespace weir::sim {

gate::gate() : state_(std::make_shared<state>()) {}

bool gate::is_open() const { return state_->open.load(std::memory_order_acquire); }

void gate::open() {
  std::vector<sleeper> ready;
  {
    const std::lock_guard lock(state_->mutex);
    state_->open.store(true, std::memory_order_release);
    ready.swap(state_->sleepers);
  }
  stream_core::wake(std::move(ready));
}

// False if the gate is open already: there is nothing to wait for.
bool gate::add_sleeper(const sleeper& s) const {
  const std::lock_guard lock(state_->mutex);
  if (is_open()) return false;
  state_->sleepers.push_back(s);
  return true;
}

}  // namespace weir::sim
