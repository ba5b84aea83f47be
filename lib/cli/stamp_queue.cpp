#include "cli/stamp_queue.hpp"

#include <fmt/format.h>

#include <cstring>

#include "cli/errors.hpp"

namespace weir::cli {

stamp_queue::stamp_queue(rig& r, stamper& kernels, int device, stream_t stream)
    : rig_(r), kernels_(kernels), device_(device), stream_(stream), slots_(launches) {
  constexpr std::size_t slot_bytes = sizeof(stamp_result) + orders_a_launch * sizeof(stamp_order);
  auto* memory = static_cast<std::byte*>(kernels.shared_memory(launches * slot_bytes));
  r.use(device);
  for (slot& s : slots_) {
    s.result = reinterpret_cast<stamp_result*>(memory);
    s.orders = reinterpret_cast<stamp_order*>(memory + sizeof(stamp_result));
    memory += slot_bytes;
    r.must(r.driver().cuEventCreate(&s.done, CU_EVENT_DISABLE_TIMING), "cuEventCreate", device);
  }
}

stamp_queue::~stamp_queue() {
  for (const slot& s : slots_) {
    if (s.done != nullptr) rig_.driver().cuEventDestroy(s.done);
  }
}

void stamp_queue::add(void* block, std::uint64_t bytes, std::uint64_t stamp, std::uint64_t todo) {
  const std::uint64_t words = bytes / sizeof(std::uint64_t);
  if (words == 0) return;
  const auto address = reinterpret_cast<std::uint64_t>(block);
  slot& s = slots_[current_];
  // Orders of one launch run side by side: the verifying of a block joins the writing of it.
  for (unsigned i = 0; i < s.count; ++i) {
    if (s.orders[i].address == address) {
      s.orders[i].todo |= todo;
      return;
    }
  }
  if (s.count == orders_a_launch) {
    flush();
    add(block, bytes, stamp, todo);
    return;
  }
  s.orders[s.count++] = {address, words, stamp, todo};
}

void stamp_queue::reclaim(slot& s) {
  if (!s.in_flight) return;
  const driver::table& driver = rig_.driver();
  CUresult result = driver.cuEventQuery(s.done);
  if (result == CUDA_ERROR_NOT_READY) result = driver.cuEventSynchronize(s.done);
  rig_.must(result, "cuEventSynchronize", device_);
  s.in_flight = false;
  s.count = 0;
  stamp_result found{};
  std::memcpy(&found, s.result, sizeof found);
  if (found.wrong == 0) return;
  *s.result = {};
  const stamp_order& order = s.orders[found.order < orders_a_launch ? found.order : 0];
  throw fault_error(fmt::format(
      "device {}: block {:#x} of {} bytes was overwritten: word {} is {:#x}, written was {:#x}", device_, order.address,
      order.words * sizeof(std::uint64_t), found.word, found.found, order.stamp + found.word));
}

void stamp_queue::flush() {
  slot& s = slots_[current_];
  if (s.count == 0) return;
  rig_.use(device_);
  kernels_.launch(device_, stream_, s.orders, s.count, s.result);
  rig_.must(rig_.driver().cuEventRecord(s.done, stream_), "cuEventRecord", device_);
  s.in_flight = true;
  last_ = s.done;
  current_ = (current_ + 1) % launches;
  reclaim(slots_[current_]);
}

void stamp_queue::wait_for(CUevent event) {
  if (event == nullptr) return;
  rig_.use(device_);
  rig_.must(rig_.driver().cuStreamWaitEvent(stream_, event, 0), "cuStreamWaitEvent", device_);
}

void stamp_queue::finish() {
  flush();
  rig_.use(device_);
  for (slot& s : slots_) reclaim(s);
}

}  // namespace weir::cli
