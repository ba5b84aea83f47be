#pragma once
// Host memory that devices may use: allocated by the driver, or registered.

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

namespace weir::sim {

struct pinned_block {
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;
  bool registered = false;  // the user's own memory
  unsigned flags = 0;
  std::uint64_t context_id = 0;
};

class pinned_memory {
 public:
  ~pinned_memory();

  /// False if a part of it is pinned already.
  bool add(const pinned_block& block);
  /// Takes out the block that begins there, of that kind.
  std::optional<pinned_block> take(std::uint64_t base, bool registered);
  [[nodiscard]] std::optional<pinned_block> find(std::uint64_t at, std::uint64_t bytes) const;

  struct totals {
    std::uint64_t blocks = 0;
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] totals sum() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::uint64_t, pinned_block> blocks_;
};

}  // namespace weir::sim
