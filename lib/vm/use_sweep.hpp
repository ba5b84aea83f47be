#pragma once
// One look at many recorded uses with few questions to the driver: an answer about one use of a stream is an answer
// about those recorded earlier (if reached) or later (if not).

#include <array>
#include <cstdint>
#include <span>

#include "vm/use_records.hpp"

namespace weir::vm {

/// For one thread and one call. The chains that it is given must be the caller's own.
class use_sweep {
 public:
  static constexpr std::uint32_t most_queries = 64;

  /// REQUIRES: a driver_scope of `here` outlives it.
  explicit use_sweep(device& here) noexcept;

  /// Asks the driver about the chains' uses: for each stream the newest, then the oldest, then halving.
  void learn(std::span<const std::uint32_t> chains) noexcept;
  /// Ends the uses of a chain that are known to be reached. Returns what is left of it. No question.
  std::uint32_t end_reached(std::uint32_t chain) noexcept;

 private:
  struct known {
    vm::device* device = nullptr;
    std::uint64_t stream = 0;
    std::uint64_t reached = 0;                    // what ended being recorded by then is reached
    std::uint64_t unreached = ~std::uint64_t{0};  // what began being recorded from then on is not
  };
  enum class answer { reached, not_reached, unknown };

  known& about(device& d, std::uint64_t stream) noexcept;
  answer look(const use_node& u) noexcept;
  void ask(use_node& u, known& k) noexcept;
  void learn(std::span<const std::uint32_t> chains, known& k) noexcept;

  device& here_;
  const std::uint64_t number_;  // of this sweep, in the uses it asked about
  std::uint32_t queries_ = 0;
  std::uint32_t next_ = 0;
  std::array<known, 16> known_{};
};

}  // namespace weir::vm
