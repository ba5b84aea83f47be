#pragma once
// How a command ends: 0 when all is well, 1 with one line for a fault, 2 with one line for what the user got wrong.

#include <stdexcept>
#include <string>

namespace weir::cli {

inline constexpr int exit_good = 0;
inline constexpr int exit_fault = 1;
inline constexpr int exit_usage = 2;

/// What the user asked for cannot be done as asked: an option, a value, a file. The text names it in one line.
class usage_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The allocator, or what stands below it, did something wrong. The text names it in one line.
class fault_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// `text` with line breaks and other control characters turned into spaces: messages are one line.
[[nodiscard]] std::string one_line(const std::string& text);

}  // namespace weir::cli
