#pragma once
// The heap's units. A granule is what state bytes count in, a page what the page heap counts in, a slot what the range
// table counts in.

#include <cstddef>
#include <cstdint>

namespace weir::heap {

inline constexpr std::uint32_t granule_shift = 8;  // 256 B
inline constexpr std::uint32_t page_shift = 16;    // 64 KiB
inline constexpr std::uint32_t stride_shift = 21;  // 2 MiB: the least that the driver maps
inline constexpr std::uint32_t slot_shift = 32;    // 4 GiB
inline constexpr std::size_t granule_bytes = std::size_t{1} << granule_shift;
inline constexpr std::size_t page_bytes = std::size_t{1} << page_shift;
inline constexpr std::size_t stride_bytes = std::size_t{1} << stride_shift;
inline constexpr std::size_t slot_bytes = std::size_t{1} << slot_shift;

inline constexpr std::uint32_t pages_per_slot = 1u << (slot_shift - page_shift);
inline constexpr std::uint32_t pages_per_stride = 1u << (stride_shift - page_shift);

// A lane's own page numbers: 2^24 pages, 1 TiB of addresses, 256 slots.
inline constexpr std::uint32_t lane_page_bits = 24;
inline constexpr std::uint32_t lane_pages = 1u << lane_page_bits;
inline constexpr std::uint32_t lane_slots = lane_pages / pages_per_slot;
inline constexpr std::uint32_t no_page = 0xffffffffu;

constexpr std::uint32_t pages_for(std::size_t bytes) noexcept {
  return static_cast<std::uint32_t>((bytes + page_bytes - 1) >> page_shift);
}

}  // namespace weir::heap
