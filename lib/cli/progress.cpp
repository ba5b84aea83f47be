#include "cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace weir::cli {

progress::progress(std::string title, std::size_t total, bool enabled)
    : title_(std::move(title)), total_(total), terminal_(enabled && isatty(STDERR_FILENO) == 1) {}

progress::~progress() {
  if (terminal_) fmt::print(stderr, "\r\x1b[K");
}

std::string progress::line(const std::string& title, std::size_t done, std::size_t total) {
  constexpr std::size_t width = 40;
  const double part = total == 0 ? 1.0 : std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const auto filled = static_cast<std::size_t>(part * width);
  return fmt::format("{} [{}{}] {:3.0f} %", title, std::string(filled, '#'), std::string(width - filled, '.'),
                     part * 100);
}

void progress::at(std::size_t done) {
  if (!terminal_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  fmt::print(stderr, "\r{}\x1b[K", line(title_, done, total_));
  std::fflush(stderr);
}

}  // namespace weir::cli
