#pragma once
// Who holds which device memory, kept apart from the allocator under test: one bit for every 256 bytes of addresses.
// A block sets its bits when it is handed out and clears them before it is freed; a bit that is set already is an
// overlap. Costs a few nanoseconds a 16 KiB, so every block of a run can be covered.

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace weir::cli {

/// Any thread may call anything at any time. Devices share addresses with nobody, so one map serves all.
class granule_map {
 public:
  static constexpr std::uint64_t granule = 256;

  granule_map();
  granule_map(const granule_map&) = delete;
  granule_map& operator=(const granule_map&) = delete;
  ~granule_map();

  /// Marks [block, block + bytes) as held. Gives the first address in it that is held by another block, or 0.
  std::uint64_t claim(const void* block, std::uint64_t bytes);
  /// Unmarks it. Gives the first address in it that was not held, or 0.
  std::uint64_t release(const void* block, std::uint64_t bytes);

  /// Granules held now.
  [[nodiscard]] std::uint64_t held() const;

 private:
  using word = std::atomic<std::uint64_t>;
  static constexpr unsigned range_log2 = 32;  // addresses of one table
  static constexpr unsigned address_log2 = 49;
  static constexpr std::uint64_t words_a_range = (std::uint64_t{1} << range_log2) / granule / 64;

  word* range(std::uint64_t address);
  template <bool Claim>
  std::uint64_t change(std::uint64_t first, std::uint64_t bytes);

  std::vector<std::atomic<word*>> ranges_;
};

}  // namespace weir::cli
