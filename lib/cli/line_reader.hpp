#pragma once
// The lines of a file, gzipped or not.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

struct gzFile_s;

namespace weir::cli {

class line_reader {
 public:
  /// Throws `usage_error` if the file cannot be opened or is a folder.
  explicit line_reader(std::string path);
  line_reader(const line_reader&) = delete;
  line_reader& operator=(const line_reader&) = delete;
  ~line_reader();

  /// The next line without its end ("\n" or "\r\n"), valid until the next call; false at the end of the file.
  /// Throws `usage_error` for damaged compressed data and lines of more than 64 KiB.
  bool next(std::string_view& line);

  /// Of the line given last, from 1.
  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }

  /// Throws `usage_error` "path:line: text" for the line given last.
  [[noreturn]] void fail(const std::string& text) const;

 private:
  bool fill();

  std::string path_;
  gzFile_s* file_ = nullptr;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::uint32_t number_ = 0;
  bool finished_ = false;
};

}  // namespace weir::cli
