// The errors' texts.

#include "weir/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace weir {

namespace {

// "1.500 GiB"; bytes below 1 KiB are whole.
std::string bytes_text(std::uint64_t bytes) {
  static constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); ++unit) value /= 1024;
  return fmt::format("{:.{}f} {}", value, value < 10 ? 3 : value < 100 ? 2 : 1, units[unit]);
}

std::uint64_t less(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; }

// All that would have helped, most direct first.
std::string advice(const out_of_memory_report& r) {
  if (r.capacity != 0 && r.asked > r.capacity) return "no device memory of this size exists";
  std::string text;
  const auto add = [&](const std::string& what) { text += (text.empty() ? "" : "; ") + what; };
  const std::uint64_t room = std::max(less(r.capacity, r.others), r.reserved);  // on the device, for us
  const std::uint64_t free_bytes = r.cached + r.free_pages;
  const std::uint64_t lack = less(r.asked, r.largest_free);
  if (r.limit != 0 && r.limit < room && lack > less(r.limit, r.reserved)) {
    const std::uint64_t raise = lack - less(r.limit, r.reserved);
    if (raise <= room - r.limit) add(fmt::format("raise the limit by {}", bytes_text(raise)));
  }
  if (r.pending - std::min(r.stranded, r.pending) != 0) {
    add(fmt::format("let the streams pass that {} of freed memory waits for", bytes_text(less(r.pending, r.stranded))));
  }
  if (r.stranded != 0) {
    add(fmt::format("call quiesced(device) when its work is done: {} was freed on streams destroyed without retire",
                    bytes_text(r.stranded)));
  }
  if (free_bytes >= r.asked)
    add(fmt::format("{} is free, but in smaller pieces or in other lanes", bytes_text(free_bytes)));
  if (r.others != 0 && r.others >= less(lack, less(r.capacity, r.reserved + r.others))) {
    add(fmt::format("free some of the {} that others hold on the device", bytes_text(r.others)));
  }
  // What the request may grow to as things are: the largest free piece and what may still be had from the driver.
  const std::uint64_t more = less(r.limit != 0 ? std::min(r.limit, room) : room, r.reserved);
  const std::uint64_t possible = r.largest_free + more;
  if (possible != 0 && possible < r.asked) {
    add(fmt::format("ask for {} B less", r.asked - possible));
  } else {
    add(fmt::format("free {} B of blocks", r.asked));
  }
  return text;
}

std::string describe(const out_of_memory_report& r) {
  std::string text = fmt::format("out of memory: {} B ({}) asked on device {}", r.asked, bytes_text(r.asked), r.device);
  const auto out = std::back_inserter(text);
  fmt::format_to(out, ": live {}, cached {}, free pages {} (largest piece {}), pending {}", bytes_text(r.live),
                 bytes_text(r.cached), bytes_text(r.free_pages), bytes_text(r.largest_free), bytes_text(r.pending));
  if (r.stranded != 0) fmt::format_to(out, " (stranded {})", bytes_text(r.stranded));
  if (r.retiring != 0) fmt::format_to(out, ", retiring {}", bytes_text(r.retiring));
  fmt::format_to(out, "; reserved {} of {}", bytes_text(r.reserved), bytes_text(r.capacity));
  fmt::format_to(out, ", limit {}", r.limit == 0 ? std::string("none") : bytes_text(r.limit));
  fmt::format_to(out, ", others hold {}", bytes_text(r.others));
  fmt::format_to(out, "; what would help: {}", advice(r));
  return text;
}

// The error is thrown when memory is short, though the host's seldom is: without a text it still is one.
std::shared_ptr<const std::string> text_of(const out_of_memory_report& r) {
  try {
    return std::make_shared<const std::string>(describe(r));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

}  // namespace

error::~error() = default;

out_of_memory::out_of_memory(const out_of_memory_report& report) : report_(report), text_(text_of(report)) {}
out_of_memory::~out_of_memory() = default;

const char* out_of_memory::what() const noexcept {
  return text_ != nullptr ? text_->c_str() : "out of device memory (and of host memory for the details)";
}

}  // namespace weir
