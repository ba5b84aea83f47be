#pragma once
// One word a page. At a run's first page it says what the run is; at the first page of each further 64-page word of
// the run it leads back to the run's first page; elsewhere it means nothing.

#include <cstdint>

namespace weir::heap {

enum class run_kind : std::uint8_t { none, freed, large, span, back };

struct run_record {
  run_kind kind = run_kind::none;
  std::uint32_t pages = 0;  // of the run; of kind back: the run's first page
  std::uint32_t waste = 0;  // bytes of a large run that were not asked for; of a span: its class

  [[nodiscard]] constexpr std::uint64_t pack() const noexcept {
    return static_cast<std::uint64_t>(kind) | std::uint64_t{pages} << 3 | std::uint64_t{waste} << 32;
  }
  static constexpr run_record unpack(std::uint64_t word) noexcept {
    return {static_cast<run_kind>(word & 7), static_cast<std::uint32_t>(word >> 3) & 0x1fffffff,
            static_cast<std::uint32_t>(word >> 32)};
  }
};

}  // namespace weir::heap
