#pragma once
// What driver calls take on an H200 (driver 580, CUDA 13.0), as measured.

#include <cstdint>

#include "driver/table.hpp"

namespace weir::sim {

/// Nanoseconds of a call whose time does not depend on sizes; 0 where nothing was measured.
std::uint64_t default_cost(driver::call c) noexcept;

enum class handle_step { create, map, set_access, unmap, release };

/// Nanoseconds of a step for one physical handle of that size.
std::uint64_t handle_cost(handle_step step, std::uint64_t bytes) noexcept;

/// The same for physical host memory, which is slow to make, and for pinned memory.
std::uint64_t host_handle_cost(handle_step step, std::uint64_t bytes) noexcept;
std::uint64_t host_allocation_cost(std::uint64_t bytes) noexcept;
std::uint64_t host_registration_cost(std::uint64_t bytes) noexcept;

}  // namespace weir::sim
