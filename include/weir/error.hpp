#pragma once
// How Weir reports failure. Allocation throws `out_of_memory` (or returns null from the `try_` forms); set-up and
// bad arguments throw `error`; freeing never throws: misuse goes to `on_misuse` (service.hpp).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include "weir/export.hpp"

namespace weir {

enum class errc {
  invalid_argument,  ///< a size, alignment, device, option or handle that can never work
  out_of_memory,     ///< see `out_of_memory`
  not_supported,     ///< the driver or device lacks what was asked (no VMM, too old, ...)
  driver_error,      ///< a driver call failed with a code of its own; the message names call and code
  not_after_fork,    ///< a forked child may not use the parent's devices
  shut_down,         ///< the driver of this process is gone (exit) or the service was destroyed
};

/// A failed call of Weir. `what()` is one line that names the thing at fault.
class WEIR_API error : public std::runtime_error {
 public:
  error(errc code, const std::string& text) : std::runtime_error(text), code_(code) {}
  ~error() override;
  [[nodiscard]] errc code() const noexcept { return code_; }

 private:
  errc code_;
};

/// What was where when a request could not be served. All sizes in bytes, read at one moment of the failing call.
struct out_of_memory_report {
  std::uint64_t asked = 0;  ///< of the failed request
  int device = 0;
  std::uint64_t capacity = 0;      ///< of the device
  std::uint64_t limit = 0;         ///< Weir's own limit on the device, 0: none
  std::uint64_t live = 0;          ///< in blocks that are allocated
  std::uint64_t cached = 0;        ///< in thread caches, bins and spans
  std::uint64_t free_pages = 0;    ///< mapped pages in no span and no run
  std::uint64_t pending = 0;       ///< freed, waiting for other streams
  std::uint64_t stranded = 0;      ///< freed on streams that vanished without `retire`
  std::uint64_t retiring = 0;      ///< on its way back to the driver
  std::uint64_t reserved = 0;      ///< physical memory that Weir holds
  std::uint64_t largest_free = 0;  ///< the largest run of free pages of the request's lane
  std::uint64_t others = 0;        ///< what is used on the device beyond Weir's own
};

/// Thrown when a request cannot be served after everything in Weir's power was tried.
class WEIR_API out_of_memory : public std::bad_alloc {
 public:
  explicit out_of_memory(const out_of_memory_report& report);
  ~out_of_memory() override;
  /// One line: what was asked, what is where, and what would have helped.
  [[nodiscard]] const char* what() const noexcept override;
  [[nodiscard]] const out_of_memory_report& report() const noexcept { return report_; }

 private:
  out_of_memory_report report_;
  std::shared_ptr<const std::string> text_;
};

}  // namespace weir
