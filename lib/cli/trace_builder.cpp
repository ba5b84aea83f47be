#include "cli/trace_builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>

namespace weir::cli {
namespace {

// More than any machine has; keeps sums and scaled sizes far from wrapping.
constexpr std::uint64_t largest_block = std::uint64_t{1} << 48;
constexpr std::uint64_t largest_sum = std::uint64_t{1} << 52;

// As the file spells it: pointers are hexadecimal there.
std::string spelled(std::uint64_t id, std::string_view what) {
  return what == "pointer" ? fmt::format("{} {:#x}", what, id) : fmt::format("{} {}", what, id);
}

}  // namespace

std::uint32_t trace_builder::dense_stream(std::uint64_t stream) {
  return streams_.try_emplace(stream, static_cast<std::uint32_t>(streams_.size())).first->second;
}

void trace_builder::push(std::uint32_t block, std::uint64_t bytes, std::uint64_t stream, bool allocate) {
  out_.events.push_back({bytes, block, dense_stream(stream), lines_.number(), allocate});
}

void trace_builder::allocate(std::uint64_t id, std::uint64_t bytes, std::uint64_t stream, const char* what) {
  if (bytes > largest_block) lines_.fail(fmt::format("size {} is more than 2^48 bytes", bytes));
  if (out_.blocks == std::numeric_limits<std::uint32_t>::max()) lines_.fail("more than 2^32 - 1 blocks");
  const auto block = static_cast<std::uint32_t>(out_.blocks);
  const auto [at, fresh] = live_.try_emplace(id, living{block, bytes, lines_.number()});
  if (!fresh) {
    lines_.fail(fmt::format("allocation of {} that is live since line {}", spelled(id, what), at->second.line));
  }
  ++out_.blocks;
  live_bytes_ += bytes;
  if (live_bytes_ > largest_sum) lines_.fail("more than 2^52 bytes live at once");
  out_.peak_requested = std::max(out_.peak_requested, live_bytes_);
  push(block, bytes, stream, true);
}

void trace_builder::free(std::uint64_t id, std::uint64_t bytes, std::uint64_t stream, const char* what) {
  const auto at = live_.find(id);
  if (at == live_.end()) lines_.fail(fmt::format("free of {} that is not live", spelled(id, what)));
  const living& block = at->second;
  if (bytes != block.bytes) {
    lines_.fail(fmt::format("free of {} with {} bytes, allocated with {} in line {}", spelled(id, what), bytes,
                            block.bytes, block.line));
  }
  live_bytes_ -= block.bytes;
  push(block.block, block.bytes, stream, false);
  live_.erase(at);
}

void trace_builder::finish() {
  if (out_.events.empty()) lines_.fail("no event after the header");
  out_.streams = streams_.size();
  out_.live_at_end = live_.size();
}

}  // namespace weir::cli
