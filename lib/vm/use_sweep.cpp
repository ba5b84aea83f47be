#include "vm/use_sweep.hpp"

#include <algorithm>
#include <optional>

namespace weir::vm {

namespace {

constinit std::atomic<std::uint64_t> sweeps{0};

template <class Each>
void each_use(std::span<const std::uint32_t> chains, Each&& each) noexcept {
  for (std::uint32_t at : chains) {
    for (; at != no_use; at = use(at).next.load(std::memory_order_relaxed)) each(use(at));
  }
}

}  // namespace

use_sweep::use_sweep(device& here) noexcept
    : here_(here), number_(sweeps.fetch_add(1, std::memory_order_relaxed) + 1) {}

use_sweep::known& use_sweep::about(device& d, std::uint64_t stream) noexcept {
  for (known& k : known_) {
    if (k.device == &d && k.stream == stream) return k;
  }
  known& k = known_[next_++ % known_.size()];  // the oldest knowledge goes: it costs a question at most
  k = known{};
  k.device = &d;
  k.stream = stream;
  return k;
}

use_sweep::answer use_sweep::look(const use_node& u) noexcept {
  device* d = u.device.load(std::memory_order_acquire);
  // A device that is gone or lost runs nothing any more.
  if (d == nullptr || u.reached || d->lost.load(std::memory_order_acquire)) return answer::reached;
  const std::uint64_t after = u.after.load(std::memory_order_relaxed);
  if (after <= d->uses_reached.load(std::memory_order_acquire)) return answer::reached;
  const known& k = about(*d, u.stream);
  if (after <= k.reached) return answer::reached;
  if (u.asked_by == number_ || u.before.load(std::memory_order_relaxed) >= k.unreached) return answer::not_reached;
  return answer::unknown;
}

void use_sweep::ask(use_node& u, known& k) noexcept {
  ++queries_;
  std::optional<driver_scope> other;
  if (k.device != &here_) other.emplace(*k.device);
  if (k.device->note(k.device->api().cuEventQuery(u.event)) == CUDA_SUCCESS) {
    u.reached = true;
    k.reached = std::max(k.reached, u.before.load(std::memory_order_relaxed));
  } else {
    u.asked_by = number_;
    k.unreached = std::min(k.unreached, u.after.load(std::memory_order_relaxed));
  }
}

void use_sweep::learn(std::span<const std::uint32_t> chains, known& k) noexcept {
  for (int round = 0; queries_ < most_queries; ++round) {
    use_node* oldest = nullptr;
    use_node* newest = nullptr;
    const auto number = [](const use_node& u) { return u.before.load(std::memory_order_relaxed); };
    const auto each_unknown = [&](auto&& each) {
      each_use(chains, [&](use_node& u) {
        if (u.stream == k.stream && u.device.load(std::memory_order_relaxed) == k.device &&
            look(u) == answer::unknown) {
          each(u);
        }
      });
    };
    each_unknown([&](use_node& u) {
      if (oldest == nullptr || number(u) < number(*oldest)) oldest = &u;
      if (newest == nullptr || number(u) > number(*newest)) newest = &u;
    });
    if (newest == nullptr) return;
    use_node* pick = round == 0 ? newest : oldest;
    if (round > 1) {
      const std::uint64_t middle = number(*oldest) + (number(*newest) - number(*oldest)) / 2;
      each_unknown([&](use_node& u) {
        if (number(u) <= middle && number(u) > number(*pick)) pick = &u;
      });
    }
    ask(*pick, k);
  }
}

void use_sweep::learn(std::span<const std::uint32_t> chains) noexcept {
  each_use(chains, [&](use_node& u) {
    if (queries_ == most_queries || look(u) != answer::unknown) return;
    device* d = u.device.load(std::memory_order_relaxed);
    if (d != nullptr) learn(chains, about(*d, u.stream));
  });
}

std::uint32_t use_sweep::end_reached(std::uint32_t chain) noexcept {
  std::uint32_t left = no_use;
  while (chain != no_use) {
    use_node& u = use(chain);
    const std::uint32_t next = u.next.load(std::memory_order_relaxed);
    if (look(u) == answer::reached) {
      device* d = u.device.load(std::memory_order_relaxed);
      std::optional<driver_scope> other;
      if (d != nullptr && d != &here_) other.emplace(*d);
      end_use(chain);
    } else {
      u.next.store(left, std::memory_order_relaxed);
      left = chain;
    }
    chain = next;
  }
  return left;
}

}  // namespace weir::vm
