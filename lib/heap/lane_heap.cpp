#include "heap/lane_heap.hpp"

#include <bit>
#include <new>

#include "heap/metadata.hpp"

namespace weir::heap {

namespace {

constexpr std::size_t round_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

// A lane's fixed records, one reservation: the object, page bits and bounds, marks, slot-number bits and bounds,
// magazines.
constexpr std::size_t object_bytes = round_up(sizeof(lane_heap), 4096);
constexpr std::size_t bits_bytes = lane_pages / 8;
constexpr std::size_t bounds_bytes = lane_pages / page_bounds::group_pages * 8;
constexpr std::size_t slot_number_bytes = 4096;
constexpr std::size_t magazine_bytes = sizeof(magazine) * magazine_pool::most;
constexpr std::size_t lane_bytes = object_bytes + 2 * bits_bytes + bounds_bytes + slot_number_bytes + magazine_bytes;

// A slot's records, one reservation.
// The states end in a pad: a block that begins in a slot's last granule keeps its waste there.
constexpr std::size_t state_bytes = slot_bytes / granule_bytes + 4096;
constexpr std::size_t record_bytes = pages_per_slot * sizeof(std::uint64_t);
constexpr std::size_t span_bytes = pages_per_slot * sizeof(span<>);
constexpr std::size_t slot_record_bytes = state_bytes + record_bytes + span_bytes;

constexpr std::uint32_t most_free_slot = page_bounds::group_pages;
static_assert(lane_slots <= most_free_slot);

}  // namespace

lane_heap::lane_heap(std::uint32_t number) noexcept : number_(number) {
  for (std::uint32_t i = 0; i < lane_slots; ++i) {
    slots_[i].lane = this;
    slots_[i].first_page = i * pages_per_slot;
  }
}

lane_heap* lane_heap::make(std::uint32_t number) noexcept {
  void* at = reserve_metadata(lane_bytes);
  if (at == nullptr) return nullptr;
  auto* lane = new (at) lane_heap(number);
  auto* cursor = static_cast<char*>(at) + object_bytes;
  const auto carve = [&cursor](std::size_t bytes) {
    char* start = cursor;
    cursor += bytes;
    return start;
  };
  auto* bits = reinterpret_cast<std::atomic<std::uint64_t>*>(carve(bits_bytes));
  lane->marks_ = reinterpret_cast<std::atomic<std::uint64_t>*>(carve(bits_bytes));
  auto* bounds = reinterpret_cast<std::atomic<std::uint64_t>*>(carve(bounds_bytes));
  lane->pages.attach(bits, bounds, lane_pages);
  auto* numbers = reinterpret_cast<std::atomic<std::uint64_t>*>(carve(slot_number_bytes));
  lane->slot_numbers_.attach(numbers, numbers + most_free_slot / 64, most_free_slot);
  lane->slot_numbers_.release(0, lane_slots);
  lane->magazines_.attach(reinterpret_cast<magazine*>(carve(magazine_bytes)));
  return lane;
}

std::uint32_t lane_heap::add_piece(std::uint64_t base, std::uint64_t bytes) noexcept {
  const auto count = static_cast<std::uint32_t>(bytes >> slot_shift);
  const std::uint32_t first = slot_numbers_.claim_thoroughly(count);
  if (first == no_page) return no_page;
  for (std::uint32_t i = 0; i < count; ++i) {
    slot& s = slots_[first + i];
    if (s.states == nullptr) {
      auto* at = static_cast<char*>(reserve_metadata(slot_record_bytes));
      if (at == nullptr) {
        slot_numbers_.release(first, count);
        return no_page;
      }
      s.records = reinterpret_cast<std::atomic<std::uint64_t>*>(at + state_bytes);
      s.spans = reinterpret_cast<span<>*>(at + state_bytes + record_bytes);
      s.states = reinterpret_cast<atomic_state*>(at);
      s.made.store(true, std::memory_order_release);
    }
    s.base.store(base + (std::uint64_t{i} << slot_shift), std::memory_order_relaxed);
    s.piece = first;
  }
  slots_[first].piece_slots = count;
  for (std::uint32_t i = 0; i < count; ++i) publish_slot(slots_[first + i], number_);
  return first * pages_per_slot;
}

void lane_heap::remove_piece(std::uint32_t first_page) noexcept {
  const std::uint32_t first = first_page / pages_per_slot;
  const std::uint32_t count = slots_[first].piece_slots;
  for (std::uint32_t i = 0; i < count; ++i) withdraw_slot(slots_[first + i]);
  // The addresses may come back as another's: nothing of them is remembered.
  for (std::uint32_t i = 0; i < count; ++i) clear_metadata(slots_[first + i].states, slot_record_bytes);
  slot_numbers_.release(first, count);
}

// --- runs ----------------------------------------------------------------------------------------------------------

void lane_heap::mark_run(std::uint32_t first, std::uint32_t count, run_record r) noexcept {
  for (std::uint32_t page = (first / 64 + 1) * 64; page < first + count; page += 64) {
    record(page).store(run_record{run_kind::back, first, 0}.pack(), std::memory_order_relaxed);
  }
  record(first).store(r.pack(), std::memory_order_relaxed);
  // Pages may be mapped for a run and never be free before: the page heap's extent says nothing of them.
  std::uint32_t end = marks_end_.load(std::memory_order_relaxed);
  while (end < first + count && !marks_end_.compare_exchange_weak(end, first + count, std::memory_order_relaxed)) {
  }
  // Release: who finds the mark (first_page_of) finds the records.
  marks_[first / 64].fetch_or(std::uint64_t{1} << first % 64, std::memory_order_release);
}

void lane_heap::unmark_run(std::uint32_t first) noexcept {
  marks_[first / 64].fetch_and(~(std::uint64_t{1} << first % 64), std::memory_order_relaxed);
}

std::uint32_t lane_heap::first_page_of(std::uint32_t page) const noexcept {
  const std::uint64_t below =
      marks_[page / 64].load(std::memory_order_acquire) & (~std::uint64_t{0} >> (63 - page % 64));
  if (below != 0) return page / 64 * 64 + static_cast<std::uint32_t>(std::bit_width(below)) - 1;
  const auto r = run_record::unpack(record(page / 64 * 64).load(std::memory_order_acquire));
  return r.kind == run_kind::back ? r.pages : no_page;
}

void* lane_heap::take_run(std::size_t bytes, std::size_t alignment, bool thorough) noexcept {
  if (bytes - 1 >= std::uint64_t{lane_pages} << page_shift) return nullptr;  // none, or more than page numbers
  const std::uint32_t count = pages_for(bytes);
  const std::uint32_t align = alignment <= page_bytes ? 1 : static_cast<std::uint32_t>(alignment >> page_shift);
  const std::uint32_t first = thorough ? pages.claim_thoroughly(count, align) : pages.claim(count, align);
  return first == no_page ? nullptr : publish_run(first, count, bytes);
}

void* lane_heap::publish_run(std::uint32_t first, std::uint32_t count, std::size_t bytes) noexcept {
  const std::size_t whole = std::size_t{count} << page_shift;
  mark_run(first, count, {run_kind::large, count, static_cast<std::uint32_t>(whole - bytes)});
  taken_more(whole);
  return reinterpret_cast<void*>(address_of(first));
}

bool lane_heap::free_run(slot& s, std::uint64_t address) noexcept {
  const std::uint32_t first = page_of(s, address);
  std::uint64_t seen = record(first).load(std::memory_order_relaxed);
  const auto r = run_record::unpack(seen);
  if (r.kind != run_kind::large) return false;
  if (!record(first).compare_exchange_strong(seen, run_record{run_kind::freed, r.pages, 0}.pack(),
                                             std::memory_order_relaxed, std::memory_order_relaxed)) {
    return false;
  }
  // A byte that nobody wrote stays untouched: its host page is not committed.
  atomic_state& state = s.states[granule_in_slot(address)];
  if (state.load(std::memory_order_relaxed) != 0) state.store(code_large, std::memory_order_relaxed);
  unmark_run(first);
  taken_less(std::uint64_t{r.pages} << page_shift);
  pages.release(first, r.pages);
  return true;
}

void lane_heap::taken_more(std::uint64_t bytes) noexcept {
  const std::uint64_t now = taken_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  std::uint64_t peak = taken_peak.load(std::memory_order_relaxed);
  while (peak < now && !taken_peak.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

// --- looking -------------------------------------------------------------------------------------------------------

bool lane_heap::find(std::uint64_t address, block_place& out) noexcept {
  slot* s = find_slot(address);
  if (s == nullptr) return false;
  lane_heap* lane = s->lane;
  const std::uint32_t page = page_of(*s, address);
  const std::uint32_t first = lane->first_page_of(page);
  if (first == no_page) return false;
  const auto r = run_record::unpack(lane->record(first).load(std::memory_order_acquire));
  if ((r.kind != run_kind::large && r.kind != run_kind::span) || page - first >= r.pages) return false;
  out.lane = lane;
  const std::uint64_t start = lane->address_of(first);
  if (r.kind == run_kind::large) {
    out.base = start;
    out.bytes = std::uint64_t{r.pages} << page_shift;
    out.cls = class_count;
  } else {
    // From the record alone: the span may be released and opened again meanwhile.
    const class_info& k = classes[r.waste];
    const std::uint64_t index = (address - start) / k.bytes;
    if (index >= k.blocks) return false;  // the span's tail
    out.base = start + index * k.bytes;
    out.bytes = k.bytes;
    out.cls = r.waste;
  }
  if (address - out.base >= out.bytes) return false;  // its piece went meanwhile, and the slot has other addresses
  out.in = find_slot(out.base);                       // a run may begin in an earlier slot
  if (out.in == nullptr) return false;
  out.state = out.in->states[granule_in_slot(out.base)].load(std::memory_order_relaxed);
  if (r.kind == run_kind::large && out.state != code_pending && out.state != (code_used | live_bit)) {
    out.state = code_large | live_bit;
  }
  return true;
}

run_kind lane_heap::kind_at(const slot& s, std::uint64_t address) const noexcept {
  if (address % page_bytes != 0) return run_kind::none;
  return run_record::unpack(record(page_of(s, address)).load(std::memory_order_acquire)).kind;
}

lane_counts lane_heap::count() const noexcept {
  lane_counts sum;
  sum.free_pages = pages.count_free() << page_shift;
  const std::uint32_t words = (marks_end_.load(std::memory_order_acquire) + 63) / 64;
  for (std::uint32_t w = 0; w < words; ++w) {
    for (std::uint64_t marks = marks_[w].load(std::memory_order_acquire); marks != 0; marks &= marks - 1) {
      const std::uint32_t page = w * 64 + static_cast<std::uint32_t>(std::countr_zero(marks));
      const auto r = run_record::unpack(record(page).load(std::memory_order_acquire));
      const std::uint64_t bytes = std::uint64_t{r.pages} << page_shift;
      if (r.kind == run_kind::large) {
        if (state_of(address_of(page))->load(std::memory_order_relaxed) == code_pending) {
          sum.large_pending += bytes;
          continue;
        }
        sum.large += bytes;
        sum.large_waste += r.waste;
        ++sum.live_blocks;
      } else if (r.kind == run_kind::span) {
        const class_info& k = classes[r.waste];
        const std::uint64_t blocks = std::uint64_t{k.bytes} * k.blocks;
        sum.in_spans += blocks;
        sum.free_in_spans += std::uint64_t{k.bytes} * span_at(page).free_blocks();
        sum.slack += bytes - blocks;
        count_blocks(address_of(page), k, sum);
      }
    }
  }
  for (std::uint32_t c = 0; c < class_count; ++c) {
    sum.in_bins += std::uint64_t{bins_[c].blocks.load(std::memory_order_relaxed)} * classes[c].bytes;
  }
  return sum;
}

void lane_heap::count_blocks(std::uint64_t start, const class_info& k, lane_counts& sum) const noexcept {
  std::uint64_t address = start;
  for (std::uint32_t i = 0; i < k.blocks; ++i, address += k.bytes) {
    const atomic_state* state = state_of(address);  // in its own slot: the span may begin in an earlier one
    const state_byte byte = state[0].load(std::memory_order_relaxed);
    if ((byte & live_bit) == 0) continue;
    sum.live_small += k.bytes;
    sum.small_waste += std::uint64_t{state_byte(state[k.waste_offset].load(std::memory_order_relaxed) & k.waste_mask)}
                       << k.waste_shift;
    ++sum.live_blocks;
  }
}

std::uint64_t lane_heap::abandon_blocks() noexcept {
  const std::uint64_t live = count().live_blocks;
  for (std::uint32_t c = 0; c < class_count; ++c) {
    void* blocks[magazine::capacity];
    while (take_magazine(c, blocks) != 0) {
    }
    for (auto& l : spans_[c].lists) l.take_all();
  }
  const std::uint32_t words = (marks_end_.load(std::memory_order_acquire) + 63) / 64;
  for (std::uint32_t w = 0; w < words; ++w) {
    for (std::uint64_t marks = marks_[w].exchange(0, std::memory_order_relaxed); marks != 0; marks &= marks - 1) {
      const std::uint32_t page = w * 64 + static_cast<std::uint32_t>(std::countr_zero(marks));
      const auto r = run_record::unpack(record(page).load(std::memory_order_relaxed));
      record(page).store(run_record{run_kind::freed, r.pages, 0}.pack(), std::memory_order_relaxed);
      if (r.kind == run_kind::span) {
        span_at(page).word.store(0, std::memory_order_relaxed);
        std::uint64_t address = address_of(page);
        const class_info& k = classes[span_at(page).cls];
        for (std::uint32_t i = 0; i < k.blocks; ++i, address += k.bytes) {
          state_of(address)->store(code_of(span_at(page).cls), std::memory_order_relaxed);
        }
      } else {
        atomic_state* state = state_of(address_of(page));
        if (state->load(std::memory_order_relaxed) != 0) state->store(code_large, std::memory_order_relaxed);
      }
      pages.release(page, r.pages);
    }
  }
  taken_.store(0, std::memory_order_relaxed);
  return live;
}

std::size_t lane_heap::metadata_bytes() const noexcept {
  std::size_t sum = resident_metadata(this, lane_bytes);
  for (const slot& s : slots_) {
    if (s.made.load(std::memory_order_acquire)) sum += resident_metadata(s.states, slot_record_bytes);
  }
  return sum;
}

const char* lane_heap::fault() const noexcept {
  if (!pages.bounds_hold()) return "a bound of the page heap promises too little";
  const std::uint32_t words = (marks_end_.load(std::memory_order_acquire) + 63) / 64;
  for (std::uint32_t w = 0; w < words; ++w) {
    for (std::uint64_t marks = marks_[w].load(std::memory_order_acquire); marks != 0; marks &= marks - 1) {
      const std::uint32_t page = w * 64 + static_cast<std::uint32_t>(std::countr_zero(marks));
      const auto r = run_record::unpack(record(page).load(std::memory_order_acquire));
      if (r.kind != run_kind::large && r.kind != run_kind::span) return "a mark without a run";
      if (pages.count_free(page, r.pages) != 0) return "a page is free and in a run";
      if (r.kind != run_kind::span) continue;
      const span<>& s = span_at(page);
      std::uint32_t set = 0;
      for (const auto& b : s.bits) set += static_cast<std::uint32_t>(std::popcount(b.load(std::memory_order_relaxed)));
      const std::uint64_t word = s.word.load(std::memory_order_relaxed);
      if (set != span<>::count_of(word)) return "a span's number differs from its bits";
      const auto state = span<>::state_of(word);
      if (state == span_state::owned || state == span_state::released) return "a span is owned by nobody";
      if ((state == span_state::full) != (set == 0)) return "a span's state does not fit its number";
    }
  }
  return nullptr;
}

}  // namespace weir::heap
