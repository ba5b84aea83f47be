#pragma once
// The text of option values: one overload of `read`, `print` and `allowed` for each type that a field of config has.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/config.hpp"

namespace weir::service_detail {

/// Each sets `out` to what `text` says; false, and `out` as it was, if it says nothing that the type can be.
bool read(std::string_view text, std::uint64_t& out) noexcept;  // bytes
bool read(std::string_view text, int& out) noexcept;
bool read(std::string_view text, bool& out) noexcept;
bool read(std::string_view text, std::chrono::milliseconds& out) noexcept;
bool read(std::string_view text, backend& out) noexcept;
bool read(std::string_view text, log_level& out) noexcept;

/// As `read` takes it, and exactly.
std::string print(std::uint64_t bytes);
std::string print(int value);
std::string print(bool value);
std::string print(std::chrono::milliseconds value);
std::string print(backend value);
std::string print(log_level value);

/// What `read` takes, for messages.
std::string_view allowed(std::uint64_t);
std::string_view allowed(int);
std::string_view allowed(bool);
std::string_view allowed(std::chrono::milliseconds);
std::string_view allowed(backend);
std::string_view allowed(log_level);

}  // namespace weir::service_detail
