#pragma once
// Turns what the lines of a trace say into dense events and refuses what cannot be.

#include <cstdint>
#include <string>
#include <unordered_map>

#include "cli/line_reader.hpp"
#include "cli/trace.hpp"

namespace weir::cli {

class trace_builder {
 public:
  trace_builder(const line_reader& lines, trace& out) : lines_(lines), out_(out) {}

  /// `id` as the file has it, `name` as messages show it ("id 12", "pointer 0x7f00").
  void allocate(std::uint64_t id, std::uint64_t bytes, std::uint64_t stream, const char* what);
  void free(std::uint64_t id, std::uint64_t bytes, std::uint64_t stream, const char* what);

  /// After the last line.
  void finish();

 private:
  std::uint32_t dense_stream(std::uint64_t stream);
  void push(std::uint32_t block, std::uint64_t bytes, std::uint64_t stream, bool allocate);

  struct living {
    std::uint32_t block;
    std::uint64_t bytes;
    std::uint32_t line;
  };
  const line_reader& lines_;
  trace& out_;
  std::unordered_map<std::uint64_t, living> live_;
  std::unordered_map<std::uint64_t, std::uint32_t> streams_;
  std::uint64_t live_bytes_ = 0;
};

}  // namespace weir::cli
