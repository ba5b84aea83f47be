#include "driver/sim/address_space.hpp"

#include <sys/mman.h>

#include <new>

namespace weir::sim {
namespace {

void* at_address(std::uint64_t address) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)); }

// Addresses with nothing behind them: any access faults, and no memory is promised.
void* reserve_host(void* where, std::uint64_t bytes) {
  const int fixed = where != nullptr ? MAP_FIXED : 0;
  return mmap(where, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
}

void show_file(void* where, const mapping& m) {
  const physical& memory = *m.memory;
  void* p = mmap(where, m.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory.home->file(),
                 static_cast<off_t>(memory.offset));
  if (p == MAP_FAILED) throw std::bad_alloc();
  m.memory->touched.store(true, std::memory_order_release);
}

}  // namespace

reservation::~reservation() {
  if (shadow_ != nullptr) munmap(shadow_, bytes_);
}

std::vector<std::shared_ptr<mapping>> reservation::cover(std::uint64_t at, std::uint64_t n) const {
  std::vector<std::shared_ptr<mapping>> found;
  if (!contains(at, n)) return found;
  auto next = mappings.upper_bound(at);
  if (next == mappings.begin()) return found;
  --next;
  std::uint64_t reached = at;
  while (next != mappings.end() && next->second->base <= reached && reached < next->second->end()) {
    found.push_back(next->second);
    reached = next->second->end();
    if (reached >= at + n) return found;
    ++next;
  }
  return {};
}

bool reservation::any_in(std::uint64_t at, std::uint64_t n) const {
  const auto next = mappings.lower_bound(at);
  if (next != mappings.end() && next->second->base < at + n) return true;
  return next != mappings.begin() && std::prev(next)->second->end() > at;
}

void reservation::show(mapping& m) {
  if (m.shadowed) return;
  if (shadow_ == nullptr) {
    void* p = reserve_host(nullptr, bytes_);
    if (p == MAP_FAILED) throw std::bad_alloc();
    shadow_ = static_cast<char*>(p);
  }
  show_file(shadow_of(m.base), m);
  m.shadowed = true;
}

void reservation::hide(mapping& m) {
  if (m.host_access) reserve_host(at_address(m.base), m.bytes);
  m.host_access = false;
  if (!m.shadowed) return;
  m.shadowed = false;
  // A newer mapping may have taken the place in the shadow while a kernel held on to this one.
  if (m.unmapped && any_in(m.base, m.bytes)) return;
  reserve_host(shadow_of(m.base), m.bytes);
}

void reservation::open_to_host(mapping& m) {
  if (m.host_access) return;
  show_file(at_address(m.base), m);
  m.host_access = true;
}

address_space::~address_space() {
  for (const auto& [base, r] : reservations_) munmap(at_address(base), r->bytes());
  for (const range& r : kept_) munmap(at_address(r.base), r.bytes);
}

std::uint64_t address_space::take_addresses(std::uint64_t bytes, std::uint64_t alignment, bool internal) {
  for (auto it = kept_.begin(); it != kept_.end(); ++it) {
    if (it->bytes != bytes || it->base % alignment != 0) continue;
    const std::uint64_t base = it->base;
    kept_.erase(it);
    return base;
  }
  // A machine that ignores alignments is there to show bases that are aligned to no more than it says.
  const std::uint64_t shift = internal || limits_.honour_alignment ? 0 : alignment;
  const std::uint64_t wanted = shift != 0 ? alignment * 2 : alignment;
  const std::uint64_t span = bytes + wanted + shift;
  void* p = span < bytes ? MAP_FAILED : reserve_host(nullptr, span);
  if (p == MAP_FAILED) return 0;
  const auto first = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(p));
  const std::uint64_t base = (first + wanted - 1) / wanted * wanted + shift;
  if (base > first) munmap(p, base - first);
  const std::uint64_t last = first + span;
  if (base + bytes < last) munmap(at_address(base + bytes), last - (base + bytes));
  return base;
}

std::shared_ptr<reservation> address_space::reserve(std::uint64_t bytes, std::uint64_t alignment, bool internal) {
  if (!internal && (!limits_.honour_alignment || alignment < limits_.alignment)) alignment = limits_.alignment;
  const std::unique_lock lock(mutex_);
  if (!internal) {
    if (limits_.largest != 0 && bytes > limits_.largest) return nullptr;
    if (limits_.total != 0 && (bytes > limits_.total || reserved_ > limits_.total - bytes)) return nullptr;
  }
  const std::uint64_t base = take_addresses(bytes, alignment, internal);
  if (base == 0) return nullptr;
  auto made = std::make_shared<reservation>(base, bytes, internal);
  reservations_.emplace(base, made);
  if (!internal) reserved_ += bytes;
  return made;
}

bool address_space::release(std::uint64_t base, std::uint64_t bytes) {
  const std::unique_lock lock(mutex_);
  const auto it = reservations_.find(base);
  if (it == reservations_.end() || it->second->bytes() != bytes) return false;
  {
    const std::lock_guard inner(it->second->mutex);
    if (!it->second->mappings.empty()) return false;
    it->second->released = true;
  }
  if (!it->second->internal) reserved_ -= bytes;
  reservations_.erase(it);
  kept_.push_front({base, bytes});
  if (kept_.size() > ranges_kept) {
    munmap(at_address(kept_.back().base), kept_.back().bytes);
    kept_.pop_back();
  }
  return true;
}

std::shared_ptr<reservation> address_space::find(std::uint64_t at) const {
  const std::shared_lock lock(mutex_);
  auto it = reservations_.upper_bound(at);
  if (it == reservations_.begin()) return nullptr;
  --it;
  return it->second->contains(at, 1) ? it->second : nullptr;
}

std::vector<std::shared_ptr<reservation>> address_space::all() const {
  const std::shared_lock lock(mutex_);
  std::vector<std::shared_ptr<reservation>> found;
  for (const auto& [base, r] : reservations_) found.push_back(r);
  return found;
}

}  // namespace weir::sim
