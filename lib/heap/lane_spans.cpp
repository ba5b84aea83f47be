// The span and bin half of lane_heap.

#include <algorithm>
#include <cstring>

#include "heap/lane_heap.hpp"

namespace weir::heap {

// --- bins ----------------------------------------------------------------------------------------------------------

std::uint32_t lane_heap::take_magazine(std::uint32_t cls, void** out) noexcept {
  bin& b = bins_[cls];
  const std::uint32_t index = b.full.pop(magazines_.link());
  if (index == tagged_stack<>::none) return 0;
  magazine& m = magazines_[index];
  const std::uint32_t count = m.count;
  std::memcpy(out, m.blocks, count * sizeof(void*));
  magazines_.give(index);
  b.blocks.fetch_sub(count, std::memory_order_relaxed);
  bin_bytes_.fetch_sub(std::uint64_t{count} * classes[cls].bytes, std::memory_order_relaxed);
  return count;
}

void lane_heap::give_blocks(void* const* blocks, std::uint32_t count) noexcept {
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto address = reinterpret_cast<std::uint64_t>(blocks[i]);
    give_block(*find_slot(address), address);
  }
}

void lane_heap::evict_for(std::uint32_t cls) noexcept {
  const std::uint64_t limit = bin_limit.load(std::memory_order_relaxed);
  const auto held = [this](std::uint32_t c) {
    return std::uint64_t{bins_[c].blocks.load(std::memory_order_relaxed)} * classes[c].bytes;
  };
  if (held(cls) > limit / 2) return;  // the class fills the bins by itself
  void* blocks[magazine::capacity];
  const std::uint32_t hand = evict_hand_.fetch_add(1, std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < class_count && bin_bytes_.load(std::memory_order_relaxed) > limit; ++i) {
    const std::uint32_t other = (hand + i) % class_count;
    if (other != cls && held(other) != 0) give_blocks(blocks, take_magazine(other, blocks));
  }
}

bool lane_heap::put_magazine(std::uint32_t cls, void* const* blocks, std::uint32_t count) noexcept {
  // Charged before it is checked: racing flushes cannot pass the limit together.
  const std::uint64_t bytes = std::uint64_t{count} * classes[cls].bytes;
  const std::uint64_t limit = bin_limit.load(std::memory_order_relaxed);
  std::uint64_t with = bin_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (with > limit && bytes <= limit) {
    // What other classes left behind in their bins makes way for what moves now.
    evict_for(cls);
    with = bin_bytes_.load(std::memory_order_relaxed);
  }
  if (with <= limit) {
    const std::uint32_t index = magazines_.take();
    if (index != tagged_stack<>::none) {
      magazine& m = magazines_[index];
      m.count = count;
      std::memcpy(m.blocks, blocks, count * sizeof(void*));
      bins_[cls].blocks.fetch_add(count, std::memory_order_relaxed);
      bins_[cls].full.push(index, magazines_.link());
      return true;
    }
  }
  bin_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  return false;
}

void lane_heap::flush(std::uint32_t cls, void* const* blocks, std::uint32_t count) noexcept {
  if (count == 0 || put_magazine(cls, blocks, count)) return;
  give_blocks(blocks, count);
}

std::uint32_t lane_heap::empty_bins() noexcept {
  std::uint32_t moved = 0;
  void* blocks[magazine::capacity];
  for (std::uint32_t c = 0; c < class_count; ++c) {
    // One magazine at a time: a thread stopped here holds no more than that. Bounded by what was there.
    for (std::uint32_t left = magazine_pool::most; left != 0; --left) {
      const std::uint32_t count = take_magazine(c, blocks);
      if (count == 0) break;
      give_blocks(blocks, count);
      moved += count;
    }
  }
  return moved;
}

// --- spans ---------------------------------------------------------------------------------------------------------

void lane_heap::list(std::uint32_t page, std::uint32_t cls) noexcept {
  span_lists& l = spans_[cls];
  l.lists[l.sweep.load(std::memory_order_relaxed) & 1].push(page, span_link());
}

std::uint32_t lane_heap::pop_span(std::uint32_t cls, std::uint32_t which) noexcept {
  const std::uint32_t page = spans_[cls].lists[which & 1].pop(span_link());
  return page == tagged_stack<>::none ? no_page : page;
}

std::uint32_t lane_heap::take_from(span<>& s, std::uint32_t cls, void** out, std::uint32_t want) noexcept {
  const std::uint64_t start = address_of(s.first_page);
  const std::uint64_t size = classes[cls].bytes;
  std::uint32_t count = 0;
  s.take(want, [&](std::uint32_t block) { out[count++] = reinterpret_cast<void*>(start + block * size); });
  if (s.close()) list(s.first_page, cls);
  // The lowest address on top of the cache.
  std::reverse(out, out + count);
  taken_more(count * size);
  return count;
}

std::uint32_t lane_heap::take_from_spans(std::uint32_t cls, void** out, std::uint32_t want) noexcept {
  const std::uint32_t now = spans_[cls].sweep.load(std::memory_order_relaxed);
  for (const std::uint32_t which : {now, now + 1}) {
    const std::uint32_t page = pop_span(cls, which);
    if (page == no_page) continue;
    span<>& s = span_at(page);
    s.own();
    return take_from(s, cls, out, want);
  }
  return 0;
}

std::uint32_t lane_heap::refill(std::uint32_t cls, void** out, std::uint32_t want, bool thorough) noexcept {
  std::uint32_t count = take_magazine(cls, out);
  if (count > want) {
    // A magazine comes whole. Who wants less would lose the rest; its oldest blocks go back.
    const std::uint32_t over = count - want;
    flush(cls, out, over);
    std::memmove(out, out + over, want * sizeof(void*));
    return want;
  }
  if (count == 0) count = take_from_spans(cls, out, want);
  if (count != 0) return count;
  const std::uint32_t length = classes[cls].pages;
  const std::uint32_t first = thorough ? pages.claim_thoroughly(length) : pages.claim(length);
  return first == no_page ? 0 : refill_from(first, cls, out, want);
}

std::uint32_t lane_heap::refill_from(std::uint32_t first, std::uint32_t cls, void** out, std::uint32_t want) noexcept {
  span<>& s = span_at(first);
  s.open(first, static_cast<std::uint8_t>(cls), classes[cls].blocks);
  mark_run(first, classes[cls].pages, {run_kind::span, classes[cls].pages, cls});
  return take_from(s, cls, out, want);
}

void lane_heap::give_block(slot& s, std::uint64_t address) noexcept {
  const std::uint32_t first = first_page_of(page_of(s, address));
  span<>& sp = span_at(first);
  const std::uint32_t cls = sp.cls;
  const std::uint64_t size = classes[cls].bytes;
  taken_less(size);
  if (sp.give(static_cast<std::uint32_t>((address - address_of(first)) / size))) list(first, cls);
}

void lane_heap::release_span(span<>& s) noexcept {
  const std::uint32_t first = s.first_page;
  const std::uint32_t length = classes[s.cls].pages;
  record(first).store(run_record{run_kind::freed, length, 0}.pack(), std::memory_order_relaxed);
  unmark_run(first);
  pages.release(first, length);
}

// Empties one list span by span: free spans are released, all others go to the list in use. A thread stopped here holds
// one. Sweeps at once empty the same list together, and leave it when one of them swaps the lists.
std::uint32_t lane_heap::sweep(std::uint32_t cls) noexcept {
  span_lists& l = spans_[cls];
  std::uint32_t released = 0;
  // First what an earlier sweep has left on the list, then all that is in use now. A list is swapped only when it was
  // seen empty, so every span that was listed when this began is looked at, by one sweep or another.
  for (const bool swap : {true, false}) {
    std::uint32_t now = l.sweep.load(std::memory_order_acquire);
    while (l.sweep.load(std::memory_order_acquire) == now) {
      const std::uint32_t page = pop_span(cls, now + 1);
      if (page == no_page) break;
      span<>& s = span_at(page);
      s.own();
      if (s.release()) {
        released += classes[cls].pages;
        release_span(s);
      } else if (s.close()) {
        l.lists[now & 1].push(page, span_link());
      }
    }
    if (!swap) break;
    if (l.lists[0].empty() && l.lists[1].empty()) break;
    l.sweep.compare_exchange_strong(now, now + 1, std::memory_order_acq_rel, std::memory_order_relaxed);
  }
  return released;
}

std::uint32_t lane_heap::release_free_spans() noexcept {
  std::uint32_t released = 0;
  for (std::uint32_t c = 0; c < class_count; ++c) released += sweep(c);
  return released;
}

}  // namespace weir::heap
