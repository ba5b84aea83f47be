#pragma once
// The heap of one lane: pages, runs, spans and bins over the lane's mapped memory. No driver call, no clock, no lock:
// every member that is not marked otherwise is lock-free and safe from any thread.
//
// The invariant of C5: whatever lies in a bin, span bit or page bit here may be used in the lane's stream order now.
//
// Sizes flow down as:  refill: bin -> span -> pages;   flush: bin, else span bits;   large: pages.
// Who gets null asks the layers above for more mapped pages and tries again.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "heap/magazine.hpp"
#include "heap/page_heap.hpp"
#include "heap/range_table.hpp"
#include "heap/run_record.hpp"
#include "heap/size_classes.hpp"
#include "heap/span.hpp"
#include "heap/units.hpp"

namespace weir::heap {

/// What an address belongs to.
struct block_place {
  lane_heap* lane = nullptr;
  slot* in = nullptr;
  std::uint64_t base = 0;           // of the block
  std::uint64_t bytes = 0;          // of the block
  std::uint32_t cls = class_count;  // class_count: a large run
  state_byte state = 0;             // of the block's first granule
};

/// Where a lane's pages are; bytes. Sums are exact at quiet points.
struct lane_counts {
  std::uint64_t free_pages = 0;
  std::uint64_t large = 0;          // live runs
  std::uint64_t large_pending = 0;  // freed runs that may not be used yet
  std::uint64_t large_waste = 0;    // not asked for, of those
  std::uint64_t in_spans = 0;       // span blocks, free or not
  std::uint64_t free_in_spans = 0;
  std::uint64_t in_bins = 0;
  std::uint64_t slack = 0;        // tails of spans
  std::uint64_t live_small = 0;   // live span blocks, by their state bytes
  std::uint64_t small_waste = 0;  // not asked for, of those
  std::uint64_t live_blocks = 0;  // number of live blocks and runs
};

class lane_heap {
 public:
  /// The records of lane `number`, from reserved metadata; null if the system refuses. Never given back: a lane that
  /// ended is `reset` and used again.
  static lane_heap* make(std::uint32_t number) noexcept;
  lane_heap(const lane_heap&) = delete;
  lane_heap& operator=(const lane_heap&) = delete;

  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }

  /// The owner's (service's) record of this lane, for whoever comes from an address.
  void* owner = nullptr;
  /// Frees of this lane's blocks are exchanged, not stored (config.hardened).
  bool hardened = false;
  /// Most bytes in the bins.
  std::atomic<std::uint64_t> bin_limit{std::uint64_t{32} << 20};

  // --- pieces ------------------------------------------------------------------------------------------------------

  /// Takes addresses [base, base + bytes) into the lane, none of them mapped. Multiples of 4 GiB. The first page's
  /// number, or no_page if page numbers or host memory ran out. The piece's last 2 MiB must never be mapped.
  std::uint32_t add_piece(std::uint64_t base, std::uint64_t bytes) noexcept;
  /// REQUIRES: no page of the piece is mapped. After it, no address of the piece is known.
  void remove_piece(std::uint32_t first_page) noexcept;
  [[nodiscard]] std::uint64_t address_of(std::uint32_t page) const noexcept {
    const slot& s = slots_[page / pages_per_slot];
    return s.base.load(std::memory_order_relaxed) + (std::uint64_t{page % pages_per_slot} << page_shift);
  }
  static std::uint32_t page_of(const slot& s, std::uint64_t address) noexcept {
    return s.first_page + (static_cast<std::uint32_t>(address) >> page_shift);
  }

  // --- large runs --------------------------------------------------------------------------------------------------

  /// A run of pages for `bytes` (any number), at a multiple of `alignment` bytes; null if none is free.
  void* take_run(std::size_t bytes, std::size_t alignment, bool thorough) noexcept;
  /// Makes claimed pages the run of a live block.
  void* publish_run(std::uint32_t first, std::uint32_t pages, std::size_t bytes) noexcept;
  /// Ends a run whose state byte was dealt with. False: it is no live run (a race of two frees).
  bool free_run(slot& s, std::uint64_t address) noexcept;

  // --- span blocks -------------------------------------------------------------------------------------------------

  /// Up to `want` free blocks of the class into `out` (room for magazine::capacity). 0: no span and no pages.
  std::uint32_t refill(std::uint32_t cls, void** out, std::uint32_t want, bool thorough) noexcept;
  /// The same from pages that the caller claimed for a new span.
  std::uint32_t refill_from(std::uint32_t first_page, std::uint32_t cls, void** out, std::uint32_t want) noexcept;
  /// Takes free blocks (at most magazine::capacity) back: into the bin, or the spans beyond the bins' limit.
  void flush(std::uint32_t cls, void* const* blocks, std::uint32_t count) noexcept;
  /// Takes one free block back to its span's bits.
  void give_block(slot& s, std::uint64_t address) noexcept;
  /// All of the bins back to the spans. Blocks moved.
  std::uint32_t empty_bins() noexcept;
  /// Forgets all blocks, live ones too, and frees their pages: the lane ends. REQUIRES: no thread is in a call of the
  /// lane, and its thread caches are forgotten. Blocks that were live.
  std::uint64_t abandon_blocks() noexcept;
  /// Gives the pages of spans with no block out back to the page heap. Pages released.
  std::uint32_t release_free_spans() noexcept;

  // --- looking -----------------------------------------------------------------------------------------------------

  /// The block that the address lies in, free or not; false where no run covers it. Constant time.
  static bool find(std::uint64_t address, block_place& out) noexcept;
  /// Walks all runs and blocks: about 1 ns a block.
  [[nodiscard]] lane_counts count() const noexcept;
  /// What the record of the page that starts at the address says; none if no page starts there.
  [[nodiscard]] run_kind kind_at(const slot& s, std::uint64_t address) const noexcept;
  /// Host bytes that the records really use.
  [[nodiscard]] std::size_t metadata_bytes() const noexcept;
  /// For tests and `service::check` at quiet points: null, or what is wrong.
  [[nodiscard]] const char* fault() const noexcept;

  page_heap<> pages;

  /// Bytes out of the spans' bits and page bits: live + cached in threads + bins + pending; and its peak.
  [[nodiscard]] std::uint64_t taken() const noexcept { return taken_.load(std::memory_order_relaxed); }
  std::atomic<std::uint64_t> taken_peak{0};

  // Counts of what bypasses the thread caches.
  std::atomic<std::uint64_t> allocations{0};
  std::atomic<std::uint64_t> frees{0};

 private:
  explicit lane_heap(std::uint32_t number) noexcept;
  bool attach() noexcept;

  std::uint32_t take_magazine(std::uint32_t cls, void** out) noexcept;
  std::uint32_t take_from_spans(std::uint32_t cls, void** out, std::uint32_t want) noexcept;
  std::uint32_t take_from(span<>& s, std::uint32_t cls, void** out, std::uint32_t want) noexcept;
  void give_blocks(void* const* blocks, std::uint32_t count) noexcept;
  void evict_for(std::uint32_t cls) noexcept;
  bool put_magazine(std::uint32_t cls, void* const* blocks, std::uint32_t count) noexcept;
  void list(std::uint32_t page, std::uint32_t cls) noexcept;
  std::uint32_t pop_span(std::uint32_t cls, std::uint32_t which) noexcept;
  void release_span(span<>& s) noexcept;
  std::uint32_t sweep(std::uint32_t cls) noexcept;
  void mark_run(std::uint32_t first, std::uint32_t pages, run_record record) noexcept;
  void unmark_run(std::uint32_t first) noexcept;
  std::uint32_t first_page_of(std::uint32_t page) const noexcept;
  void count_blocks(std::uint64_t start, const class_info& k, lane_counts& sum) const noexcept;
  void taken_more(std::uint64_t bytes) noexcept;
  void taken_less(std::uint64_t bytes) noexcept { taken_.fetch_sub(bytes, std::memory_order_relaxed); }

  std::atomic<std::uint64_t>& record(std::uint32_t page) const noexcept {
    return slots_[page / pages_per_slot].records[page % pages_per_slot];
  }
  span<>& span_at(std::uint32_t page) const noexcept {
    return slots_[page / pages_per_slot].spans[page % pages_per_slot];
  }
  auto span_link() const noexcept {
    return [this](std::uint32_t page) -> std::atomic<std::uint32_t>& { return span_at(page).next; };
  }

  // Spans are put on the list that the low bit of `sweep` names; sweeps empty the other one, then swap them.
  struct alignas(64) span_lists {
    tagged_stack<> lists[2];
    std::atomic<std::uint32_t> sweep;
  };

  const std::uint32_t number_;
  alignas(64) std::atomic<std::uint64_t> bin_bytes_{0};
  std::atomic<std::uint32_t> evict_hand_{0};
  alignas(64) std::atomic<std::uint64_t> taken_{0};
  magazine_pool magazines_;
  std::array<bin, class_count> bins_{};
  std::array<span_lists, class_count> spans_{};
  std::atomic<std::uint64_t>* marks_ = nullptr;  // one bit a page: a run starts here
  std::atomic<std::uint32_t> marks_end_{0};      // no run was ever at or above it
  page_heap<> slot_numbers_;                     // free slot numbers of the lane
  mutable std::array<slot, lane_slots> slots_{};
};

}  // namespace weir::heap
