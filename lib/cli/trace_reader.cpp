// The two formats of a trace: Weir's own and RMM's log.

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <string_view>

#include "cli/errors.hpp"
#include "cli/line_reader.hpp"
#include "cli/trace.hpp"
#include "cli/trace_builder.hpp"

namespace weir::cli {
namespace {

constexpr std::string_view own_header = "op,id,bytes,stream";
constexpr std::string_view rmm_header = "Thread,Time,Action,Pointer,Size,Stream";

template <std::size_t N>
std::array<std::string_view, N> split(const line_reader& lines, std::string_view line) {
  std::array<std::string_view, N> fields;
  std::size_t n = 0;
  for (std::string_view rest = line;;) {
    const std::size_t comma = rest.find(',');
    if (n < N) fields[n] = rest.substr(0, comma);
    ++n;
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  if (n != N) lines.fail(fmt::format("{} fields instead of {}", n, N));
  return fields;
}

std::uint64_t number(const line_reader& lines, std::string_view text, const char* column, int base = 10) {
  std::uint64_t value = 0;
  const char* last = text.data() + text.size();
  const auto [end, fault] = std::from_chars(text.data(), last, value, base);
  if (text.empty() || fault != std::errc{} || end != last) {
    lines.fail(fmt::format("{} '{}' is not a number", column, text));
  }
  return value;
}

// RMM prints addresses as the C++ library or printf does: 0x7f..., 0, (nil).
std::uint64_t address(const line_reader& lines, std::string_view text, const char* column) {
  if (text == "(nil)") return 0;
  std::string_view digits = text;
  if (digits.starts_with("0x") || digits.starts_with("0X")) digits.remove_prefix(2);
  return number(lines, digits, column, 16);
}

void read_own(line_reader& lines, trace_builder& builder) {
  for (std::string_view line; lines.next(line);) {
    if (line.empty()) continue;
    const auto [op, id_text, bytes_text, stream_text] = split<4>(lines, line);
    if (op != "a" && op != "f") lines.fail(fmt::format("op '{}' is neither a nor f", op));
    const std::uint64_t id = number(lines, id_text, "id");
    const std::uint64_t bytes = number(lines, bytes_text, "bytes");
    const std::uint64_t stream = number(lines, stream_text, "stream");
    if (op == "a") {
      builder.allocate(id, bytes, stream, "id");
    } else {
      builder.free(id, bytes, stream, "id");
    }
  }
}

void read_rmm(line_reader& lines, trace_builder& builder) {
  for (std::string_view line; lines.next(line);) {
    if (line.empty()) continue;
    const auto [thread, time, action, pointer_text, size_text, stream_text] = split<6>(lines, line);
    if (action != "allocate" && action != "free" && action != "allocate failure") {
      lines.fail(fmt::format("action '{}' is none of allocate, free, allocate failure", action));
    }
    const std::uint64_t pointer = address(lines, pointer_text, "pointer");
    const std::uint64_t size = number(lines, size_text, "size");
    const std::uint64_t stream = address(lines, stream_text, "stream");
    // A failed call left no block, and one for nothing gave null: neither can be freed later.
    if (action == "allocate failure" || (pointer == 0 && size == 0)) continue;
    if (action == "allocate") {
      builder.allocate(pointer, size, stream, "pointer");
    } else {
      builder.free(pointer, size, stream, "pointer");
    }
  }
}

}  // namespace

trace read_trace(const std::string& path) {
  line_reader lines(path);
  trace out;
  out.path = path;
  std::string_view line;
  bool any = lines.next(line);
  while (any && (line.empty() || line[0] == '#')) {
    if (out.comment.empty()) {
      while (!line.empty() && (line[0] == '#' || line[0] == ' ')) line.remove_prefix(1);
      out.comment = line;
    }
    any = lines.next(line);
  }
  if (!any) lines.fail("no header line");
  trace_builder builder(lines, out);
  if (line == own_header) {
    read_own(lines, builder);
  } else if (line == rmm_header) {
    read_rmm(lines, builder);
  } else {
    lines.fail(fmt::format("the header '{}' is neither '{}' nor '{}'", line.substr(0, 80), own_header, rmm_header));
  }
  builder.finish();
  return out;
}

}  // namespace weir::cli
