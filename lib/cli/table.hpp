#pragma once
// Text in columns.

#include <cstddef>
#include <string>
#include <vector>

namespace weir::cli {

/// Rows of cells; columns are as wide as their widest cell. Columns are set left, those named in `right` to the right.
class table {
 public:
  explicit table(std::vector<std::size_t> right = {}) : right_(std::move(right)) {}

  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  /// One line a row, two spaces between columns, no trailing spaces.
  [[nodiscard]] std::string text() const;

 private:
  std::vector<std::size_t> right_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace weir::cli
