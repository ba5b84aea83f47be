#pragma once
// Addresses of device memory: reservations of host addresses that nobody can touch, mappings in them, and the shadow
// through which kernels reach the memory (the same file range mapped once more).

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "driver/sim/physical.hpp"

namespace weir::sim {

/// One address of one physical allocation.
struct mapping {
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;
  std::shared_ptr<physical> memory;
  std::uint64_t readable = 0;  // one bit a device
  std::uint64_t writable = 0;
  bool host_access = false;  // host memory, mapped at the device address too
  bool plain = false;        // made by cuMemAlloc: peers reach it by enabling, not by cuMemSetAccess
  bool shadowed = false;     // the shadow shows it
  bool unmapped = false;
  int pins = 0;  // running kernels that look at it
  [[nodiscard]] std::uint64_t end() const noexcept { return base + bytes; }
};

/// A reserved range. Its mutex guards the mappings and what they hold.
class reservation {
 public:
  reservation(std::uint64_t base, std::uint64_t bytes, bool is_internal)
      : internal(is_internal), base_(base), bytes_(bytes) {}
  ~reservation();
  reservation(const reservation&) = delete;
  reservation& operator=(const reservation&) = delete;

  [[nodiscard]] std::uint64_t base() const noexcept { return base_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::uint64_t end() const noexcept { return base_ + bytes_; }
  [[nodiscard]] bool contains(std::uint64_t at, std::uint64_t n) const noexcept {
    return at >= base_ && n <= bytes_ && at - base_ <= bytes_ - n;
  }

  const bool internal;  // of cuMemAlloc and its like, not of cuMemAddressReserve
  std::mutex mutex;
  std::map<std::uint64_t, std::shared_ptr<mapping>> mappings;  // by base
  bool released = false;

  // The rest with the mutex held.

  /// Mappings that cover [at, at + n) without a gap; empty if there is one.
  std::vector<std::shared_ptr<mapping>> cover(std::uint64_t at, std::uint64_t n) const;
  [[nodiscard]] bool any_in(std::uint64_t at, std::uint64_t n) const;
  /// Makes the shadow show the mapping. Throws std::bad_alloc if the host refuses.
  void show(mapping& m);
  /// Takes the mapping's addresses out of the shadow, and out of the host's reach.
  void hide(mapping& m);
  /// Lets the host at the device address itself: host memory only.
  void open_to_host(mapping& m);
  /// Host address of a shadowed device address.
  [[nodiscard]] char* shadow_of(std::uint64_t at) const noexcept { return shadow_ + (at - base_); }

 private:
  const std::uint64_t base_;
  const std::uint64_t bytes_;
  char* shadow_ = nullptr;  // made on first use: half of all addresses are saved where no kernel looks
};

/// All reservations of a machine.
class address_space {
 public:
  struct limits {
    std::uint64_t alignment = 0;
    bool honour_alignment = true;
    std::uint64_t largest = 0;
    std::uint64_t total = 0;
  };
  explicit address_space(limits l) : limits_(l) {}
  ~address_space();
  address_space(const address_space&) = delete;
  address_space& operator=(const address_space&) = delete;

  /// Null if a limit or the host's address space is exceeded. `internal`: of cuMemAlloc and so on; no limits.
  std::shared_ptr<reservation> reserve(std::uint64_t bytes, std::uint64_t alignment, bool internal);
  /// Ends exactly that reservation; false if there is none, or something is mapped in it.
  bool release(std::uint64_t base, std::uint64_t bytes);
  [[nodiscard]] std::shared_ptr<reservation> find(std::uint64_t at) const;
  [[nodiscard]] std::vector<std::shared_ptr<reservation>> all() const;

 private:
  struct range {
    std::uint64_t base = 0;
    std::uint64_t bytes = 0;
  };
  static constexpr std::size_t ranges_kept = 16;

  std::uint64_t take_addresses(std::uint64_t bytes, std::uint64_t alignment, bool internal);

  const limits limits_;
  mutable std::shared_mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<reservation>> reservations_;
  std::list<range> kept_;       // released last first: the next like reservation gets the same addresses at once
  std::uint64_t reserved_ = 0;  // without internal ones
};

}  // namespace weir::sim
