#include "vm/use_records.hpp"

#include "vm/pending.hpp"
#include "vm/streams.hpp"

namespace weir::vm {

namespace {

constinit node_pool<use_node, 1u << 20> nodes;

// The table: open addressing in a fixed window of entries. A key is zero, or the block whose uses the entry holds; two
// entries of one block are legal (two threads' first uses at once), so a search looks at the whole window.
struct entry {
  std::atomic<std::uint64_t> block;
  std::atomic<std::uint32_t> first;  // its first use's index plus one; 0: none
  std::uint32_t unused;
};
constexpr std::uint32_t table_bits = 18;
constexpr std::uint32_t window = 32;
constexpr std::size_t table_bytes = sizeof(entry) * ((std::size_t{1} << table_bits) + window);
constinit std::atomic<entry*> table{nullptr};

entry* window_of(std::uint64_t block) noexcept {
  const std::uint64_t mixed = (block >> heap::granule_shift) * 0x9e3779b97f4a7c15u;
  return table.load(std::memory_order_relaxed) + (mixed >> (64 - table_bits));
}

/// The block's entry, made if there is none; null if the window is full.
entry* entry_of(std::uint64_t block) noexcept {
  entry* const w = window_of(block);
  for (std::uint32_t i = 0; i < window; ++i) {
    if (w[i].block.load(std::memory_order_acquire) == block) return &w[i];
  }
  for (std::uint32_t i = 0; i < window; ++i) {
    std::uint64_t nobody = 0;
    if (w[i].block.load(std::memory_order_relaxed) == 0 &&
        w[i].block.compare_exchange_strong(nobody, block, std::memory_order_acq_rel, std::memory_order_relaxed)) {
      return &w[i];
    }
  }
  return nullptr;
}

/// Records the use's event, or records it again.
CUresult record(device& d, use_node& u, CUstream stream) noexcept {
  const std::uint64_t before = d.use_clock.fetch_add(1, std::memory_order_seq_cst);
  const CUresult recorded = d.note(d.api().cuEventRecord(u.event, stream));
  if (recorded != CUDA_SUCCESS) return recorded;
  u.before.store(before, std::memory_order_relaxed);
  u.after.store(d.use_clock.load(std::memory_order_seq_cst), std::memory_order_relaxed);
  return recorded;
}

/// The block's use by that stream, or null.
use_node* find_use(entry& e, const device& d, std::uint64_t stream) noexcept {
  for (std::uint32_t at = e.first.load(std::memory_order_acquire); at != 0;) {
    use_node& u = nodes[at - 1];
    if (u.stream == stream && u.device.load(std::memory_order_relaxed) == &d) return &u;
    const std::uint32_t next = u.next.load(std::memory_order_relaxed);
    at = next == no_use ? 0 : next + 1;
  }
  return nullptr;
}

CUresult add_use(entry& e, device& d, std::uint64_t id, CUstream stream, std::uint32_t near) noexcept {
  const std::uint32_t index = nodes.take(near);
  if (index == no_use) return CUDA_ERROR_OUT_OF_MEMORY;
  use_node& u = nodes[index];
  CUresult result = d.note(d.events.take(u.event));
  if (result == CUDA_SUCCESS) {
    result = record(d, u, stream);
    if (result != CUDA_SUCCESS) d.events.give(u.event);
  }
  if (result != CUDA_SUCCESS) {
    nodes.give(index, near);
    return result;
  }
  u.stream = id;
  u.asked_by = 0;
  u.reached = false;
  u.device.store(&d, std::memory_order_relaxed);
  d.uses.fetch_add(1, std::memory_order_relaxed);
  // Pushed only, and taken as a whole: an entry that comes back meanwhile is as good.
  std::uint32_t first = e.first.load(std::memory_order_relaxed);
  do {
    u.next.store(first == 0 ? no_use : first - 1, std::memory_order_relaxed);
  } while (!e.first.compare_exchange_weak(first, index + 1, std::memory_order_release, std::memory_order_relaxed));
  return CUDA_SUCCESS;
}

}  // namespace

bool prepare_uses() noexcept {
  if (!nodes.prepare()) return false;
  if (table.load(std::memory_order_acquire) != nullptr) return true;
  void* at = heap::reserve_metadata(table_bytes);
  if (at == nullptr) return false;
  entry* nobody = nullptr;
  if (!table.compare_exchange_strong(nobody, static_cast<entry*>(at), std::memory_order_acq_rel)) {
    ::munmap(at, table_bytes);
  }
  return true;
}

use_node& use(std::uint32_t index) noexcept { return nodes[index]; }

CUresult record_use(device& d, std::uint64_t block_base, CUstream stream) noexcept {
  heap::slot* s = heap::find_slot(block_base);
  if (s == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (d.lost.load(std::memory_order_acquire)) return d.lost_error();
  CUresult result = d.ensure_context();
  if (result != CUDA_SUCCESS) return result;
  const driver_scope scope(d);
  if (scope.result() != CUDA_SUCCESS) return d.note(scope.result());
  if (capturing(d, stream)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  unsigned long long id = 0;
  result = d.note(d.api().cuStreamGetId(stream, &id));
  if (result != CUDA_SUCCESS) return result;
  // Its own stream's order needs no record.
  const lane* owner = lane_of(*s->lane);
  if (owner->device == &d && owner->stream_id == id) return CUDA_SUCCESS;

  entry* e = entry_of(block_base);
  if (e == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  use_node* before = find_use(*e, d, id);
  result = before != nullptr ? record(d, *before, stream) : add_use(*e, d, id, stream, s->lane->number());
  // The entry stays even so: another thread's first use of the block may be on its way into it.
  if (result != CUDA_SUCCESS) return result;
  s->states[heap::granule_in_slot(block_base)].store(heap::code_used | heap::live_bit, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

std::uint32_t take_uses(std::uint64_t block) noexcept {
  std::uint32_t all = no_use;
  entry* const w = window_of(block);
  for (std::uint32_t i = 0; i < window; ++i) {
    if (w[i].block.load(std::memory_order_acquire) != block) continue;
    const std::uint32_t first = w[i].first.exchange(0, std::memory_order_acquire);
    w[i].block.store(0, std::memory_order_release);
    if (first == 0) continue;
    std::uint32_t last = first - 1;
    for (std::uint32_t next = 0; (next = nodes[last].next.load(std::memory_order_relaxed)) != no_use;) last = next;
    nodes[last].next.store(all, std::memory_order_relaxed);
    all = first - 1;
  }
  return all;
}

void end_use(std::uint32_t index) noexcept {
  use_node& u = nodes[index];
  device* d = u.device.exchange(nullptr, std::memory_order_acq_rel);
  if (d != nullptr) {
    d->events.give(u.event);
    d->uses.fetch_sub(1, std::memory_order_relaxed);
  }
  nodes.give(index, index);
}

void forget_uses(device& d) noexcept {
  if (d.uses.load(std::memory_order_acquire) == 0) return;
  for (std::uint32_t i = 0; i < nodes.extent(); ++i) {
    device* owner = &d;
    if (nodes[i].device.compare_exchange_strong(owner, nullptr, std::memory_order_acq_rel))
      d.events.give(nodes[i].event);
  }
  d.uses.store(0, std::memory_order_relaxed);
  // Blocks that only this device used: their entries have nothing left to say.
  entry* const all = table.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < table_bytes / sizeof(entry); ++i) {
    const std::uint64_t block = all[i].block.load(std::memory_order_relaxed);
    if (block == 0) continue;
    bool alone = true;
    for (std::uint32_t at = all[i].first.load(std::memory_order_acquire); at != 0 && alone;) {
      alone = nodes[at - 1].device.load(std::memory_order_relaxed) == nullptr;
      const std::uint32_t next = nodes[at - 1].next.load(std::memory_order_relaxed);
      at = next == no_use ? 0 : next + 1;
    }
    if (!alone) continue;
    for (std::uint32_t at = take_uses(block); at != no_use;) {
      const std::uint32_t next = nodes[at].next.load(std::memory_order_relaxed);
      end_use(at);
      at = next;
    }
  }
}

}  // namespace weir::vm
