#pragma once
// A bar on stderr, drawn only if that is a terminal.

#include <chrono>
#include <cstddef>
#include <string>

namespace weir::cli {

class progress {
 public:
  /// `enabled`: draw if stderr is a terminal; false: never.
  progress(std::string title, std::size_t total, bool enabled = true);
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;
  ~progress();  ///< wipes the line

  /// Draws at most ten times a second.
  void at(std::size_t done);
  [[nodiscard]] bool drawn() const noexcept { return terminal_; }

  /// The bar alone: "title [#####.....]  50 %".
  [[nodiscard]] static std::string line(const std::string& title, std::size_t done, std::size_t total);

 private:
  std::string title_;
  std::size_t total_;
  bool terminal_;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace weir::cli
