#pragma once
// What is written into a block and checked before it is freed: every word holds the block's stamp plus its own index.

#include <cstddef>
#include <cstdint>

namespace weir::cli {

/// One order to a stamping kernel, as the GPU's kernel reads it (stamper_cuda.cpp).
struct stamp_order {
  static constexpr std::uint64_t write = 1;
  static constexpr std::uint64_t verify = 2;  ///< after the writing, where both are asked for

  std::uint64_t address = 0;
  std::uint64_t words = 0;  ///< of 8 bytes
  std::uint64_t stamp = 0;
  std::uint64_t todo = 0;
};

/// What the orders of one launch found; the last wrong word where there are several.
struct stamp_result {
  std::uint64_t wrong = 0;  ///< 0: all was right
  std::uint64_t order = 0;
  std::uint64_t word = 0;
  std::uint64_t found = 0;
};

/// A host function that carries out an order touches this many words at most, spread over the block from the first to
/// the last, so that a big block costs little host memory. A GPU touches all.
inline constexpr std::uint64_t sampled_words = 16;

[[nodiscard]] constexpr std::uint64_t sample_count(std::uint64_t words) noexcept {
  return words < sampled_words ? words : sampled_words;
}
[[nodiscard]] constexpr std::uint64_t sample_at(std::uint64_t words, std::uint64_t i) noexcept {
  return words <= sampled_words ? i : i * (words - 1) / (sampled_words - 1);
}

}  // namespace weir::cli
