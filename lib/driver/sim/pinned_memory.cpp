#include "driver/sim/pinned_memory.hpp"

#include <sys/mman.h>

namespace weir::sim {

pinned_memory::~pinned_memory() {
  for (const auto& [base, block] : blocks_) {
    if (!block.registered) munmap(reinterpret_cast<void*>(static_cast<std::uintptr_t>(base)), block.bytes);
  }
}

bool pinned_memory::add(const pinned_block& block) {
  const std::lock_guard lock(mutex_);
  const auto next = blocks_.lower_bound(block.base);
  if (next != blocks_.end() && next->second.base < block.base + block.bytes) return false;
  if (next != blocks_.begin()) {
    const pinned_block& before = std::prev(next)->second;
    if (before.base + before.bytes > block.base) return false;
  }
  blocks_.emplace(block.base, block);
  return true;
}

std::optional<pinned_block> pinned_memory::take(std::uint64_t base, bool registered) {
  const std::lock_guard lock(mutex_);
  const auto it = blocks_.find(base);
  if (it == blocks_.end() || it->second.registered != registered) return std::nullopt;
  const pinned_block block = it->second;
  blocks_.erase(it);
  return block;
}

std::optional<pinned_block> pinned_memory::find(std::uint64_t at, std::uint64_t bytes) const {
  const std::lock_guard lock(mutex_);
  auto it = blocks_.upper_bound(at);
  if (it == blocks_.begin()) return std::nullopt;
  const pinned_block& block = (--it)->second;
  const std::uint64_t into = at - block.base;
  if (into >= block.bytes || bytes > block.bytes - into) return std::nullopt;
  return block;
}

pinned_memory::totals pinned_memory::sum() const {
  const std::lock_guard lock(mutex_);
  totals all;
  for (const auto& [base, block] : blocks_) {
    ++all.blocks;
    all.bytes += block.bytes;
  }
  return all;
}

}  // namespace weir::sim
