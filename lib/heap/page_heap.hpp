#pragma once
// The page heap: which pages of a number space are free, one bit a page; a set bit is a mapped, free page.
//
// Allocation is address-ordered first fit, claimed by compare-and-swap on the words. A run over several words claims
// them in ascending order and gives back what it took when it meets a taken one: of overlapping claims, the one that
// was stopped highest was stopped by one that goes on, so somebody always gets through. Coalescing needs no work: two
// neighbours that are free are one run. Zeroed memory is a valid, empty heap.
//
// Above each group of 64 words lies one word of upper bounds (page_bounds.hpp). A release sets its bits, then raises
// the bounds and the version; a search that finds less than promised lowers them, if the version is still the one it
// read before it looked. Between a release's two steps the run is missed by searches that trust the bounds, so
// "no fit" is proven only by `claim_thoroughly`.
//
// Invariants: (I1) a bit is set only by the owner of the page (release) and cleared only by a claim that saw it set.
// (I2) with no release under way, every bound >= the truth. Progress: claim and release are lock-free; nobody waits.

#include <atomic>
#include <bit>
#include <cstdint>

#include "heap/page_bounds.hpp"
#include "heap/units.hpp"

namespace weir::heap {

template <template <class> class Atom = std::atomic>
class page_heap {
 public:
  using word = Atom<std::uint64_t>;
  static constexpr std::uint32_t none = no_page;

  page_heap() noexcept = default;
  /// `bits`: pages / 64 words, `bounds`: pages / 4096 words, both zeroed and outliving this.
  /// REQUIRES: pages is a multiple of 4096.
  page_heap(word* bits, word* bounds, std::uint32_t pages) noexcept { attach(bits, bounds, pages); }
  void attach(word* bits, word* bounds, std::uint32_t pages) noexcept;

  /// Claims the first free run of `pages` at a multiple of `alignment` (in pages, a power of two). Its first page, or
  /// none. May miss a run whose release is under way.
  std::uint32_t claim(std::uint32_t pages, std::uint32_t alignment = 1) noexcept;

  /// As claim, but ignores the bounds, and repeats while claims over several words were in flight or given back, or
  /// pages were released (at most `tries` times: a claim's owner may be stopped). After it, "none" was true at one
  /// moment but for those.
  std::uint32_t claim_thoroughly(std::uint32_t pages, std::uint32_t alignment = 1, int tries = 100) noexcept;

  /// Claims exactly [first, first + pages) if all of it is free.
  bool claim_at(std::uint32_t first, std::uint32_t pages) noexcept;

  /// Makes pages free. REQUIRES: the caller owns them (claimed, or never free before).
  void release(std::uint32_t first, std::uint32_t pages) noexcept;

  /// Free pages just below `end` that are contiguous with it, at most `most`. A moment's truth.
  [[nodiscard]] std::uint32_t free_below(std::uint32_t end, std::uint32_t most) const noexcept;

  /// Free pages in [first, first + pages); a moment's truth.
  [[nodiscard]] std::uint64_t count_free(std::uint32_t first, std::uint32_t pages) const noexcept;
  [[nodiscard]] std::uint64_t count_free() const noexcept { return count_free(0, extent()); }
  [[nodiscard]] std::uint32_t longest_free() const noexcept;

  /// No page at or above it was ever free.
  [[nodiscard]] std::uint32_t extent() const noexcept { return extent_.load(std::memory_order_acquire); }

  /// For tests at quiet points: every bound holds the truth.
  [[nodiscard]] bool bounds_hold() const noexcept;

 private:
  static constexpr std::uint32_t word_pages = 64;
  static constexpr std::uint32_t group_words = 64;
  static constexpr std::uint32_t group_pages = page_bounds::group_pages;

  /// The first free run of `pages` in [from, limit) at the alignment, or none. Reads only.
  std::uint32_t find(std::uint32_t from, std::uint32_t limit, std::uint32_t pages,
                     std::uint32_t alignment) const noexcept;
  std::uint32_t next_free(std::uint32_t from, std::uint32_t limit) const noexcept;
  std::uint32_t next_taken(std::uint32_t from, std::uint32_t limit) const noexcept;
  std::uint32_t claim_within(std::uint32_t from, std::uint32_t limit, std::uint32_t pages,
                             std::uint32_t alignment) noexcept;
  bool claim_word(std::uint32_t index, std::uint64_t mask) noexcept;
  void set_bits(std::uint32_t first, std::uint32_t pages) noexcept;
  [[nodiscard]] page_bounds measure(std::uint32_t group) const noexcept;
  void lower(std::uint32_t group) noexcept;
  void raise(std::uint32_t group, const page_bounds& truth) noexcept;
  void raise_around(std::uint32_t first, std::uint32_t pages) noexcept;
  void extend(std::uint32_t end) noexcept;
  /// Advances with every release.
  [[nodiscard]] std::uint64_t versions() const noexcept;

  static constexpr std::uint64_t mask_of(std::uint32_t bit, std::uint32_t count) noexcept {
    return (count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1) << bit;
  }

  word* bits_ = nullptr;
  word* bounds_ = nullptr;
  std::uint32_t pages_ = 0;
  Atom<std::uint32_t> extent_{0};
  // Claims over several words: in flight (low 32 bits), given back so far (high 32).
  Atom<std::uint64_t> claims_{0};
};

}  // namespace weir::heap

#include "heap/page_heap_impl.hpp"  // IWYU pragma: export
