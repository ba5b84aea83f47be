#include "heap/metadata.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace weir::heap {

namespace {

constexpr std::size_t host_page = 4096;

// PAGEMAP_SCAN of Linux 6.7, which the headers of Debian 12 do not have. It tells pages that hold something from those
// that were only read and share the page of zeroes; mincore counts both.
struct scan_region {
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t categories;
};
struct scan_argument {
  std::uint64_t size;
  std::uint64_t flags;
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t walk_end;
  std::uint64_t regions;
  std::uint64_t region_count;
  std::uint64_t max_pages;
  std::uint64_t inverted;
  std::uint64_t all_of;
  std::uint64_t any_of;
  std::uint64_t returned;
};
constexpr std::uint64_t is_present = 1 << 3;
constexpr std::uint64_t is_zero_page = 1 << 5;

// Bytes, or -1 where the system cannot tell.
std::int64_t scan(std::uint64_t start, std::uint64_t end) noexcept {
  const int file = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  std::array<scan_region, 256> regions{};
  std::int64_t sum = 0;
  while (start < end) {
    scan_argument a{};
    a.size = sizeof(a);
    a.start = start;
    a.end = end;
    a.regions = reinterpret_cast<std::uint64_t>(regions.data());
    a.region_count = regions.size();
    a.inverted = is_zero_page;
    a.all_of = is_present | is_zero_page;
    a.returned = is_present;
    const int found = ::ioctl(file, _IOWR('f', 16, scan_argument), &a);
    if (found < 0) {
      sum = -1;
      break;
    }
    for (int i = 0; i < found; ++i) {
      const scan_region& r = regions[static_cast<std::size_t>(i)];
      sum += static_cast<std::int64_t>(r.end - r.start);
    }
    if (a.walk_end <= start) break;
    start = a.walk_end;
  }
  ::close(file);
  return sum;
}

std::size_t in_core(std::uintptr_t first, std::size_t bytes) noexcept {
  std::array<unsigned char, 4096> in_memory{};
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

}  // namespace

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
  const auto given = reinterpret_cast<std::uintptr_t>(start);
  const std::uintptr_t first = given / host_page * host_page;
  const std::uintptr_t end = (given + bytes + host_page - 1) / host_page * host_page;
  const std::int64_t scanned = scan(first, end);
  return scanned >= 0 ? static_cast<std::size_t>(scanned) : in_core(first, end - first);
}

}  // namespace weir::heap
