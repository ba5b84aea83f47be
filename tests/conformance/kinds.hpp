#pragma once
// The kinds of memory that the conformance suite runs over: a configuration and a way to ask.

#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "support/rig.hpp"

namespace weir::test {

enum class way {
  lane,
  raw_stream,    // the service's calls with a stream
  pool,          // a lane of a pool of its own
  capture_pool,  // inside an announced capture
  aligned,       // a lane, every block at 64 KiB
  legacy,        // a lane of the legacy default stream
  per_thread     // a lane of the per-thread default stream
};

struct kind {
  std::string name;
  way asked_by = way::lane;
  config options = quiet();
  friend std::ostream& operator<<(std::ostream& out, const kind& k) { return out << k.name; }
};

/// All kinds, each configuration as lanes and raw streams.
std::vector<kind> kinds();

/// Memory of device 0 of one kind.
class conformance : public testing::TestWithParam<kind> {
 protected:
  conformance();
  ~conformance() override;

  void* allocate(std::size_t bytes, std::size_t alignment = default_alignment);
  void* try_allocate(std::size_t bytes, std::size_t alignment = default_alignment) noexcept;
  void deallocate(void* block) noexcept;

  /// A stream's kernels run in order with the blocks; not in a capture, whose nodes never run.
  [[nodiscard]] bool runs_kernels() const { return GetParam().asked_by != way::capture_pool; }
  [[nodiscard]] block_info info(const void* address) const;

  rig rig_{GetParam().options, devices(2)};
  stream_t stream_ = nullptr;

 private:
  weir::lane lane_;
  weir::pool pool_;
  std::unique_ptr<weir::capture> capture_;
};

}  // namespace weir::test
