#include "cli/replay_touch.hpp"

#include <fmt/format.h>

#include "cli/errors.hpp"

namespace weir::cli {
namespace {
// Blocks differ in the upper half, words of one block in the lower.
std::uint64_t stamp_of(std::size_t block) { return (static_cast<std::uint64_t>(block) + 1) << 32; }
}  // namespace

block_toucher::block_toucher(rig& r, const std::vector<stream_t>& streams, std::size_t blocks)
    : kernels_(make_stamper(r)), writers_(blocks) {
  for (stream_t s : streams) queues_.push_back(std::make_unique<stamp_queue>(r, *kernels_, 0, s));
}

void block_toucher::allocated(std::size_t block, void* address, std::uint64_t bytes, std::size_t stream) {
  if (address == nullptr) return;
  const std::uint64_t taken = map_.claim(address, bytes);
  if (taken != 0) {
    throw fault_error(fmt::format("block {:#x} of {} bytes overlaps a live block at {:#x}",
                                  reinterpret_cast<std::uint64_t>(address), bytes, taken));
  }
  writers_[block] = stream;
  queues_[stream]->write(address, bytes, stamp_of(block));
}

void block_toucher::freeing(std::size_t block, void* address, std::uint64_t bytes, std::size_t stream) {
  if (address == nullptr) return;
  const std::uint64_t lost = map_.release(address, bytes);
  if (lost != 0) {
    throw fault_error(fmt::format("{:#x} in live block {:#x} was freed by somebody else", lost,
                                  reinterpret_cast<std::uint64_t>(address)));
  }
  stamp_queue& queue = *queues_[stream];
  if (writers_[block] != stream) {
    queues_[writers_[block]]->flush();
    queue.wait_for(queues_[writers_[block]]->last_launch());
  }
  queue.verify(address, bytes, stamp_of(block));
  queue.flush();
}

void block_toucher::finish() {
  for (const auto& queue : queues_) queue->finish();
}

}  // namespace weir::cli
