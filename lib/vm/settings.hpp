#pragma once
// What a device is told by the configuration: plain values.

#include <atomic>
#include <chrono>
#include <cstdint>

namespace weir::vm {

struct settings {
  std::uint64_t limit = 0;       // most bytes of handles; 0: the device's own memory
  std::uint64_t chunk_size = 0;  // 0: policy (chunk_size.hpp)
  std::uint64_t piece_size = 0;  // 0: the device's memory rounded up to 4 GiB
  std::chrono::milliseconds growth_patience{100};
  bool context_fence = true;
  const std::atomic<int>* trim_holds = nullptr;  // how many hold_trims scopes live; null: none ever
};

}  // namespace weir::vm
