#include "cli/line_reader.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "cli/errors.hpp"

namespace weir::cli {
namespace {
constexpr std::size_t longest_line = 64 << 10;
constexpr const char* too_long = "a line of more than 65536 characters";
constexpr std::size_t buffer_bytes = 4 * longest_line;
}  // namespace

line_reader::line_reader(std::string path) : path_(std::move(path)), buffer_(buffer_bytes) {
  std::error_code ignored;
  // zlib opens a folder without complaint and then reads nothing.
  if (std::filesystem::is_directory(path_, ignored)) throw usage_error(fmt::format("{}: is a folder", path_));
  errno = 0;
  file_ = gzopen(path_.c_str(), "rb");
  if (file_ == nullptr) {
    throw usage_error(fmt::format("{}: {}", path_, errno != 0 ? std::strerror(errno) : "cannot be opened"));
  }
  gzbuffer(file_, 256 << 10);
}

line_reader::~line_reader() { gzclose(file_); }

void line_reader::fail(const std::string& text) const {
  throw usage_error(one_line(fmt::format("{}:{}: {}", path_, std::max(number_, 1U), text)));
}

bool line_reader::fill() {
  if (finished_) return false;
  std::move(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_), buffer_.begin() + static_cast<std::ptrdiff_t>(end_),
            buffer_.begin());
  end_ -= begin_;
  begin_ = 0;
  const int got = gzread(file_, buffer_.data() + end_, static_cast<unsigned>(buffer_.size() - end_));
  // A file cut short gives its last bytes first and the fault only when asked.
  int code = Z_OK;
  const char* text = gzerror(file_, &code);
  if (got < 0 || (got == 0 && code != Z_OK && code != Z_STREAM_END)) {
    ++number_;
    fail(fmt::format("damaged: {}", code == Z_ERRNO ? std::strerror(errno) : text));
  }
  end_ += static_cast<std::size_t>(got);
  if (got == 0) finished_ = true;
  return got > 0;
}

bool line_reader::next(std::string_view& line) {
  std::size_t seen = 0;
  for (;;) {
    const char* first = buffer_.data() + begin_;
    const std::size_t have = end_ - begin_;
    const void* found = have > seen ? std::memchr(first + seen, '\n', have - seen) : nullptr;
    if (found != nullptr || (finished_ && have > 0)) {
      const std::size_t length =
          found != nullptr ? static_cast<std::size_t>(static_cast<const char*>(found) - first) : have;
      ++number_;
      if (length > longest_line) fail(too_long);
      begin_ += found != nullptr ? length + 1 : length;
      line = std::string_view(first, length);
      if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
      return true;
    }
    if (finished_) return false;
    if (have > longest_line) {
      ++number_;
      fail(too_long);
    }
    seen = have;
    fill();
  }
}

}  // namespace weir::cli
