#pragma once
// Included by page_heap.hpp alone.
//
// Memory orders. A page's content and records pass from its last owner to the next through its bit: set with release
// (1), cleared with acquire (2). Bounds pair (3) release with (4) acquire: who reads a raised bound sees the bits that
// raised it. Between two neighbours' releases, each must see the other's bits or be seen: (1) and the look around it
// (5) are sequentially consistent.

#include <algorithm>

#include "heap/page_heap.hpp"

namespace weir::heap {

template <template <class> class Atom>
void page_heap<Atom>::attach(word* bits, word* bounds, std::uint32_t pages) noexcept {
  bits_ = bits;
  bounds_ = bounds;
  pages_ = pages;
  extent_.store(0, std::memory_order_relaxed);
  claims_.store(0, std::memory_order_relaxed);
}

template <template <class> class Atom>
std::uint32_t page_heap<Atom>::claim(std::uint32_t pages, std::uint32_t alignment) noexcept {
  const std::uint32_t groups = (extent() + group_pages - 1) / group_pages;
  std::uint32_t carry = 0;  // promised free pages that end where the group begins
  for (std::uint32_t g = 0; g < groups; ++g) {
    const std::uint32_t start = g * group_pages;
    const page_bounds promised = page_bounds::unpack(bounds_[g].load(std::memory_order_acquire));  // (4)
    const bool crossing = carry != 0 && promised.prefix != 0 && carry + promised.prefix >= pages;
    if (crossing || promised.longest >= pages) {
      const std::uint32_t from = crossing ? start - carry : start;
      const std::uint32_t page = claim_within(from, start + group_pages, pages, alignment);
      if (page != none) return page;
      // Promised, not found: correct the promises that led here.
      for (std::uint32_t k = from / group_pages; k <= g; ++k) lower(k);
    }
    const page_bounds now = page_bounds::unpack(bounds_[g].load(std::memory_order_acquire));
    carry = now.prefix == group_pages ? carry + group_pages : now.suffix;
  }
  return none;
}

template <template <class> class Atom>
std::uint32_t page_heap<Atom>::claim_thoroughly(std::uint32_t pages, std::uint32_t alignment, int tries) noexcept {
  for (;;) {
    const std::uint64_t before = claims_.load(std::memory_order_seq_cst);
    const std::uint64_t releases = versions();
    const std::uint32_t page = claim_within(0, extent(), pages, alignment);
    if (page != none) return page;
    // A claim in flight, or given back since, may have hidden the run: explored in m_claim. So may a release behind the
    // search with a claim before it: pages were free all the time, but never where it looked. Without a release the
    // free pages only became fewer, so what was not found was not there at the end.
    const bool undisturbed =
        (before & 0xffffffff) == 0 && versions() == releases && claims_.load(std::memory_order_seq_cst) == before;
    if (undisturbed || --tries <= 0) return none;
  }
}

template <template <class> class Atom>
std::uint64_t page_heap<Atom>::versions() const noexcept {
  std::uint64_t sum = 0;
  const std::uint32_t groups = (extent() + group_pages - 1) / group_pages;
  for (std::uint32_t g = 0; g < groups; ++g)
    sum += page_bounds::unpack(bounds_[g].load(std::memory_order_seq_cst)).version;
  return sum;
}

template <template <class> class Atom>
std::uint32_t page_heap<Atom>::claim_within(std::uint32_t from, std::uint32_t limit, std::uint32_t pages,
                                            std::uint32_t alignment) noexcept {
  for (;;) {
    const std::uint32_t page = find(from, limit, pages, alignment);
    if (page == none || claim_at(page, pages)) return page;
    from = page;  // somebody was faster; look again from here
  }
}

template <template <class> class Atom>
bool page_heap<Atom>::claim_word(std::uint32_t index, std::uint64_t mask) noexcept {
  std::uint64_t seen = bits_[index].load(std::memory_order_relaxed);
  while ((seen & mask) == mask) {
    // (2) acquire: pairs with (1)
    if (bits_[index].compare_exchange_weak(seen, seen & ~mask, std::memory_order_acquire, std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

template <template <class> class Atom>
bool page_heap<Atom>::claim_at(std::uint32_t first, std::uint32_t pages) noexcept {
  const std::uint32_t head = first % word_pages;
  if (head + pages <= word_pages) return claim_word(first / word_pages, mask_of(head, pages));

  claims_.fetch_add(1, std::memory_order_seq_cst);
  std::uint32_t done = 0;
  bool whole = true;
  while (done < pages) {
    const std::uint32_t bit = (first + done) % word_pages;
    const std::uint32_t count = std::min(pages - done, word_pages - bit);
    if (!claim_word((first + done) / word_pages, mask_of(bit, count))) {
      whole = false;
      break;
    }
    done += count;
  }
  if (!whole && done != 0) release(first, done);
  // One less in flight; one more given back, if it was.
  claims_.fetch_add((whole ? 0 : std::uint64_t{1} << 32) - 1, std::memory_order_seq_cst);
  return whole;
}

template <template <class> class Atom>
void page_heap<Atom>::set_bits(std::uint32_t first, std::uint32_t pages) noexcept {
  for (std::uint32_t done = 0; done < pages;) {
    const std::uint32_t bit = (first + done) % word_pages;
    const std::uint32_t count = std::min(pages - done, word_pages - bit);
    // (1) release (and more, for (5)): pairs with the acquire in (2)
    bits_[(first + done) / word_pages].fetch_or(mask_of(bit, count), std::memory_order_seq_cst);
    done += count;
  }
}

template <template <class> class Atom>
void page_heap<Atom>::extend(std::uint32_t end) noexcept {
  std::uint32_t seen = extent_.load(std::memory_order_relaxed);
  while (seen < end &&
         !extent_.compare_exchange_weak(seen, end, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

template <template <class> class Atom>
void page_heap<Atom>::release(std::uint32_t first, std::uint32_t pages) noexcept {
  extend(first + pages);
  set_bits(first, pages);
  raise_around(first, pages);
}

template <template <class> class Atom>
void page_heap<Atom>::raise_around(std::uint32_t first, std::uint32_t pages) noexcept {
  const std::uint32_t end = first + pages;
  for (std::uint32_t g = first / group_pages; g * group_pages < end; ++g) {
    const std::uint32_t start = g * group_pages;
    const std::uint32_t stop = start + group_pages;
    std::uint32_t a = std::max(first, start);
    std::uint32_t z = std::min(end, stop);
    // (5) The run that the pages joined, within the group. Bits are read sequentially consistent after (1).
    while (a > start) {
      const std::uint64_t w = ~bits_[(a - 1) / word_pages].load(std::memory_order_seq_cst);
      const std::uint32_t bit = (a - 1) % word_pages;
      const std::uint64_t taken_below = w & mask_of(0, bit + 1);
      if (taken_below == 0) {
        a -= bit + 1;
        continue;
      }
      a = (a - 1) - bit + static_cast<std::uint32_t>(std::bit_width(taken_below));
      break;
    }
    while (z < stop) {
      const std::uint32_t bit = z % word_pages;
      const std::uint64_t taken_above = ~bits_[z / word_pages].load(std::memory_order_seq_cst) >> bit;
      if (taken_above == 0) {
        z += word_pages - bit;
        continue;
      }
      z += static_cast<std::uint32_t>(std::countr_zero(taken_above));
      break;
    }
    z = std::min(z, stop);
    raise(g, {a == start ? z - a : 0, z == stop ? z - a : 0, z - a, 0});
  }
}

template <template <class> class Atom>
void page_heap<Atom>::raise(std::uint32_t group, const page_bounds& truth) noexcept {
  std::uint64_t seen = bounds_[group].load(std::memory_order_relaxed);
  // The version advances even where the promise stands already: a search may be about to lower it.
  // (3) release: pairs with (4)
  while (!bounds_[group].compare_exchange_weak(seen, page_bounds::unpack(seen).raised(truth).pack(),
                                               std::memory_order_release, std::memory_order_relaxed)) {
  }
}

template <template <class> class Atom>
page_bounds page_heap<Atom>::measure(std::uint32_t group) const noexcept {
  page_bounds truth;
  std::uint32_t run = 0;   // free pages that end here
  bool from_start = true;  // no taken page so far
  for (std::uint32_t i = 0; i < group_words; ++i) {
    const std::uint64_t w = bits_[group * group_words + i].load(std::memory_order_relaxed);
    if (w == ~std::uint64_t{0}) {
      run += word_pages;
      continue;
    }
    std::uint32_t bit = 0;
    while (bit < word_pages) {
      const auto rest = w >> bit;
      const auto free_here =
          std::min<std::uint32_t>(static_cast<std::uint32_t>(std::countr_one(rest)), word_pages - bit);
      run += free_here;
      bit += free_here;
      if (bit == word_pages) break;
      truth.longest = std::max(truth.longest, run);
      if (from_start) truth.prefix = run;
      from_start = false;
      run = 0;
      const auto after = w >> bit;
      bit += after == 0 ? word_pages - bit : static_cast<std::uint32_t>(std::countr_zero(after));
    }
  }
  truth.longest = std::max(truth.longest, run);
  truth.suffix = run;
  if (from_start) truth.prefix = run;
  return truth;
}

template <template <class> class Atom>
void page_heap<Atom>::lower(std::uint32_t group) noexcept {
  std::uint64_t seen = bounds_[group].load(std::memory_order_acquire);  // (4), before looking
  page_bounds truth = measure(group);
  const page_bounds promised = page_bounds::unpack(seen);
  if (!promised.promises_more_than(truth)) return;
  truth.version = promised.version + 1;
  bounds_[group].compare_exchange_strong(seen, truth.pack(), std::memory_order_relaxed, std::memory_order_relaxed);
}

template <template <class> class Atom>
std::uint32_t page_heap<Atom>::next_free(std::uint32_t from, std::uint32_t limit) const noexcept {
  while (from < limit) {
    const std::uint64_t w = bits_[from / word_pages].load(std::memory_order_relaxed) >> from % word_pages;
    if (w != 0) return std::min(limit, from + static_cast<std::uint32_t>(std::countr_zero(w)));
    from = (from / word_pages + 1) * word_pages;
  }
  return limit;
}

template <template <class> class Atom>
std::uint32_t page_heap<Atom>::next_taken(std::uint32_t from, std::uint32_t limit) const noexcept {
  while (from < limit) {
    const std::uint64_t w = ~bits_[from / word_pages].load(std::memory_order_relaxed) >> from % word_pages;
    if (w != 0) return std::min(limit, from + static_cast<std::uint32_t>(std::countr_zero(w)));
    from = (from / word_pages + 1) * word_pages;
  }
  return limit;
}

template <template <class> class Atom>
std::uint32_t page_heap<Atom>::find(std::uint32_t from, std::uint32_t limit, std::uint32_t pages,
                                    std::uint32_t alignment) const noexcept {
  limit = std::min(limit, extent());
  for (std::uint32_t page = from; page < limit;) {
    const std::uint32_t start = (next_free(page, limit) + alignment - 1) & ~(alignment - 1);
    if (start >= limit || pages > limit - start) return none;
    const std::uint32_t end = next_taken(start, start + pages);
    if (end == start + pages) return start;
    page = end + 1;
  }
  return none;
}

template <template <class> class Atom>
std::uint32_t page_heap<Atom>::free_below(std::uint32_t end, std::uint32_t most) const noexcept {
  std::uint32_t count = 0;
  while (count < most && end > count) {
    const std::uint32_t page = end - count - 1;
    if ((bits_[page / word_pages].load(std::memory_order_relaxed) >> page % word_pages & 1) == 0) break;
    ++count;
  }
  return count;
}

template <template <class> class Atom>
std::uint64_t page_heap<Atom>::count_free(std::uint32_t first, std::uint32_t pages) const noexcept {
  std::uint64_t sum = 0;
  for (std::uint32_t done = 0; done < pages;) {
    const std::uint32_t bit = (first + done) % word_pages;
    const std::uint32_t count = std::min(pages - done, word_pages - bit);
    const std::uint64_t w = bits_[(first + done) / word_pages].load(std::memory_order_relaxed);
    sum += static_cast<std::uint64_t>(std::popcount(w & mask_of(bit, count)));
    done += count;
  }
  return sum;
}

template <template <class> class Atom>
std::uint32_t page_heap<Atom>::longest_free() const noexcept {
  std::uint32_t longest = 0;
  const std::uint32_t end = extent();
  for (std::uint32_t page = next_free(0, end); page < end;) {
    const std::uint32_t stop = next_taken(page, end);
    longest = std::max(longest, stop - page);
    page = next_free(stop, end);
  }
  return longest;
}

template <template <class> class Atom>
bool page_heap<Atom>::bounds_hold() const noexcept {
  for (std::uint32_t g = 0; g * group_pages < extent(); ++g) {
    const page_bounds promised = page_bounds::unpack(bounds_[g].load(std::memory_order_acquire));
    if (measure(g).promises_more_than(promised)) return false;
  }
  return true;
}

}  // namespace weir::heap
