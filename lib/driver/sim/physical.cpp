#include "driver/sim/physical.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace weir::sim {
namespace {

// Every range gets a fresh offset, so the file is larger than any machine will ever use up.
constexpr off_t file_bytes = off_t{1} << 50;

}  // namespace

backing::backing(int owner, std::uint64_t capacity) : owner_(owner), capacity_(capacity) {
  file_ = memfd_create("weir-simulated-memory", MFD_CLOEXEC);
  if (file_ < 0 || ftruncate(file_, file_bytes) != 0) {
    const int error = errno;
    if (file_ >= 0) close(file_);
    throw std::system_error(error, std::generic_category(), "simulated memory: cannot make a sparse file");
  }
}

backing::~backing() { close(file_); }

std::uint64_t backing::free() const noexcept {
  const std::uint64_t taken = used() + others.load(std::memory_order_acquire);
  return taken < capacity_ ? capacity_ - taken : 0;
}

bool backing::charge(std::uint64_t bytes) noexcept {
  std::uint64_t used = used_.load(std::memory_order_acquire);
  do {
    const std::uint64_t taken = used + others.load(std::memory_order_acquire);
    if (taken > capacity_ || bytes > capacity_ - taken) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_acq_rel));
  return true;
}

void backing::punch(std::uint64_t offset, std::uint64_t bytes) const noexcept {
  fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), static_cast<off_t>(bytes));
}

std::shared_ptr<physical> physical::make(const std::shared_ptr<backing>& from, std::uint64_t bytes) {
  if (!from->charge(bytes)) return nullptr;
  return std::make_shared<physical>(from, bytes);
}

physical::physical(std::shared_ptr<backing> from, std::uint64_t size)
    : home(std::move(from)), bytes(size), offset(home->place(size)) {}

physical::~physical() {
  if (touched.load(std::memory_order_acquire)) home->punch(offset, bytes);
  if (!lost.load(std::memory_order_acquire)) home->discharge(bytes);
}

}  // namespace weir::sim
