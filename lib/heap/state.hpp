#pragma once
// The state byte of a granule. The byte of a block's first granule says whose block it is; all others stay as they
// are, except that the second one of a live small block keeps its waste (size_classes.hpp), which has no live bit.
//
//   0               never given
//   class, 0..79    + live bit: a live block; without: a free one (in a cache, bin or span), stored as class + 1
//   pending         freed, not yet reusable
//   used            live, with recorded uses: its free takes the slow path
//   large           the first granule of a run that was pending or used once
//
// A live run is known by its record (run_record.hpp); its byte counts only where it says pending or used. So a host
// page of state bytes, 4 KiB for 1 MiB of device memory, is committed only where small blocks live.

#include <atomic>
#include <cstdint>

#include "heap/size_classes.hpp"

namespace weir::heap {

using state_byte = std::uint8_t;

inline constexpr state_byte live_bit = 0x80;
inline constexpr state_byte code_mask = 0x7f;
inline constexpr state_byte code_of_class0 = 1;
inline constexpr state_byte code_pending = 0x7d;
inline constexpr state_byte code_used = 0x7e;
inline constexpr state_byte code_large = 0x7f;
static_assert(code_of_class0 + class_count <= code_pending);

constexpr state_byte code_of(std::uint32_t c) noexcept { return static_cast<state_byte>(code_of_class0 + c); }
constexpr bool is_class(state_byte code) noexcept {
  return code >= code_of_class0 && code < code_of_class0 + class_count;
}
constexpr std::uint32_t class_of_code(state_byte code) noexcept { return code - code_of_class0; }

// State bytes are atomics only for the sake of misuse: two threads that free one block race here. Relaxed loads and
// stores are plain byte accesses; a block's hand-over between threads is ordered by the caller.
using atomic_state = std::atomic<state_byte>;
static_assert(sizeof(atomic_state) == 1 && atomic_state::is_always_lock_free);

}  // namespace weir::heap
