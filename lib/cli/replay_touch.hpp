#pragma once
// `weir replay --touch`: every block is written in its stream's order, verified before it is freed, and must not
// overlap any other.

#include <cstdint>
#include <memory>
#include <vector>

#include "cli/granule_map.hpp"
#include "cli/stamp_queue.hpp"

namespace weir::cli {

/// For one thread. Blocks are known by numbers from 0; members throw `fault_error`.
class block_toucher {
 public:
  /// `streams`: of device 0, in the order that `stream` below counts in.
  block_toucher(rig& r, const std::vector<stream_t>& streams, std::size_t blocks);

  /// After the allocation, of which `stream` is the lane's.
  void allocated(std::size_t block, void* address, std::uint64_t bytes, std::size_t stream);
  /// Before the free, in the order of `stream`.
  void freeing(std::size_t block, void* address, std::uint64_t bytes, std::size_t stream);
  /// Waits for all and looks at what was found.
  void finish();

 private:
  std::unique_ptr<stamper> kernels_;
  granule_map map_;
  std::vector<std::unique_ptr<stamp_queue>> queues_;
  std::vector<std::size_t> writers_;  // stream that wrote each block
};

}  // namespace weir::cli
