#include "coordinator/deallocate.hpp"

#include <cinttypes>

#include "cache/miss.hpp"
#include "heap/lane_heap.hpp"
#include "vm/pending.hpp"

namespace weir::coordinator {

namespace {

// Where a misuse of no known service is reported: any service that lives, else nowhere.
hooks* told_of(const core* c, const lane_state* l) noexcept {
  if (c != nullptr) return &const_cast<core*>(c)->told;
  core* own = l == nullptr ? nullptr : l->core.load(std::memory_order_acquire);
  return own == nullptr ? process_hooks() : &own->told;
}

void refuse(hooks* told, const void* block) noexcept {
  if (told == nullptr) return;
  const auto address = reinterpret_cast<std::uint64_t>(block);
  heap::block_place at;
  if (!heap::lane_heap::find(address, at)) {
    // What was freed leaves its state byte or record behind, without a run around it.
    const heap::slot* s = heap::find_slot(address);
    if (s != nullptr && address % heap::granule_bytes == 0 &&
        (heap::state_of(address)->load(std::memory_order_relaxed) != 0 ||
         s->lane->kind_at(*s, address) == heap::run_kind::freed)) {
      return told->report(misuse::kind::double_free, block, "double free of %p: its memory is free", block);
    }
    return told->report(misuse::kind::foreign_pointer, block,
                        s == nullptr ? "free of %p, which is not Weir's" : "free of %p, which lies in no block of Weir",
                        block);
  }
  if (at.base != address) {
    return told->report(misuse::kind::interior_pointer, block,
                        "free of %p, which lies inside the block %#" PRIx64 " of %" PRIu64 " bytes", block, at.base,
                        at.bytes);
  }
  told->report(misuse::kind::double_free, block, "double free of %p, a block of %" PRIu64 " bytes%s", block, at.bytes,
               at.state == heap::code_pending ? " whose first free is pending" : "");
}

}  // namespace

void deallocate(void* block, lane_state* freed_in, const core* from) noexcept {
  if (block == nullptr || !cache::usable_here()) return;
  const auto address = reinterpret_cast<std::uint64_t>(block);
  heap::slot* s = heap::find_slot(address);
  if (s == nullptr || address % heap::granule_bytes != 0) return refuse(told_of(from, freed_in), block);
  lane_state& own = lane_state_of(*s->lane);
  const core* c = own.core.load(std::memory_order_acquire);
  if (freed_in != nullptr && freed_in->core.load(std::memory_order_acquire) == nullptr) {
    hooks* told = told_of(nullptr, &own);  // null where no service lives any more
    if (told != nullptr) told->report(misuse::kind::other_service, block, "free of %p in a lane that has ended", block);
    return;
  }
  const core* other = from != nullptr || freed_in == nullptr ? from : freed_in->core.load(std::memory_order_acquire);
  if (other != nullptr && other != c) {
    return told_of(other, nullptr)
        ->report(misuse::kind::other_service, block, "free of %p, a block of another service", block);
  }

  heap::atomic_state& state = *heap::state_of(address);
  heap::state_byte byte = state.load(std::memory_order_relaxed);
  heap::state_byte seen = byte;  // as it stands there: a run's says nothing
  if ((byte & heap::live_bit) == 0) {
    const bool run = byte != heap::code_pending && s->lane->kind_at(*s, address) == heap::run_kind::large;
    if (!run) return refuse(told_of(from, &own), block);
    byte = heap::code_large | heap::live_bit;
  }
  const heap::state_byte code = byte & heap::code_mask;
  const bool elsewhere = freed_in != nullptr && freed_in != &own;
  const bool waits = elsewhere || code == heap::code_used;

  // A run's free is decided by its record; everything else by this byte, compared and exchanged where that was asked
  // for.
  if (waits || code != heap::code_large) {
    const heap::state_byte then = waits ? heap::code_pending : code;
    if (s->lane->hardened) {
      // Of two frees at one instant one finds another byte than it saw. Relaxed: that is all it decides.
      if (!state.compare_exchange_strong(seen, then, std::memory_order_relaxed, std::memory_order_relaxed)) {
        return refuse(told_of(from, &own), block);
      }
    } else {
      state.store(then, std::memory_order_relaxed);
    }
  }

  bool done = true;
  if (code == heap::code_used) {
    done = vm::push_used((freed_in != nullptr ? *freed_in : own).base, address);
  } else if (elsewhere) {
    done = vm::push_pending(freed_in->base, address);
  } else if (code == heap::code_large) {
    if (!s->lane->free_run(*s, address)) refuse(told_of(from, &own), block);
  } else {
    cache::keep(*s->lane, heap::class_of_code(code), block);
  }
  if (!done) {
    // No record is left for it: it stays allocated, which is safe, and said.
    state.store(byte, std::memory_order_relaxed);
    if (hooks* told = told_of(from, &own); told != nullptr) {
      told->say(log_level::error, -1, "no record is left for the pending free of %p: it stays allocated", block);
    }
  }
}

}  // namespace weir::coordinator
