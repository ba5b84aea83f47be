#pragma once
// The lanes of a device that have or had memory, or wait for something: for whoever has to visit them all.

#include <atomic>
#include <cstdint>

namespace weir::vm {

struct lane;

/// Lock-free, no malloc. Lanes list themselves at the first need.
class lane_list {
 public:
  static constexpr std::uint32_t most = 1u << 16;

  lane_list() noexcept;
  ~lane_list();
  lane_list(const lane_list&) = delete;
  lane_list& operator=(const lane_list&) = delete;

  /// False: the list is full, or host memory ran out when it was made.
  bool add(lane& l) noexcept;
  void remove(lane& l) noexcept;

  /// Calls each(lane&) for all that are listed.
  template <class Each>
  void each(Each&& each) const noexcept {
    const std::uint32_t end = end_.load(std::memory_order_acquire);
    for (std::uint32_t i = 0; i < end; ++i) {
      if (lane* l = lanes_[i].load(std::memory_order_acquire)) each(*l);
    }
  }

 private:
  std::atomic<lane*>* lanes_;
  std::atomic<std::uint32_t> end_{0};
};

}  // namespace weir::vm
