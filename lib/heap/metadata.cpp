#include "heap/metadata.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>

namespace weir::heap {

namespace {
constexpr std::size_t host_page = 4096;
}

void* reserve_metadata(std::size_t bytes, bool wipe_on_fork) noexcept {
  void* p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  // Records are touched sparsely: a huge page would commit 2 MiB for one byte.
  ::madvise(p, bytes, MADV_NOHUGEPAGE);
  if (wipe_on_fork) ::madvise(p, bytes, MADV_WIPEONFORK);
  return p;
}

void clear_metadata(void* start, std::size_t bytes) noexcept { ::madvise(start, bytes, MADV_DONTNEED); }

std::size_t resident_metadata(const void* start, std::size_t bytes) noexcept {
  std::array<unsigned char, 4096> in_memory{};
  const auto given = reinterpret_cast<std::uintptr_t>(start);
  const std::uintptr_t first = given / host_page * host_page;
  bytes += given - first;
  std::size_t resident = 0;
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t part = std::min(bytes - done, in_memory.size() * host_page);
    if (::mincore(reinterpret_cast<void*>(first + done), part, in_memory.data()) != 0) return resident;
    const std::size_t pages = (part + host_page - 1) / host_page;
    resident += host_page * static_cast<std::size_t>(
                                std::count_if(in_memory.begin(), in_memory.begin() + static_cast<std::ptrdiff_t>(pages),
                                              [](unsigned char c) { return (c & 1) != 0; }));
    done += part;
  }
  return resident;
}

}  // namespace weir::heap
