#include <exception>
#include <mutex>
#include <vector>

#include "cli/stamper.hpp"

namespace weir::cli {
namespace {

void carry_out(int device, const stamp_order& order, std::uint64_t index, stamp_result& result) {
  // One view for the whole block: the machine checks that all of it is mapped and ours to write.
  auto* words = static_cast<std::uint64_t*>(
      sim::view(device, reinterpret_cast<void*>(order.address), order.words * sizeof(std::uint64_t)));
  const std::uint64_t samples = sample_count(order.words);
  if ((order.todo & stamp_order::write) != 0) {
    for (std::uint64_t i = 0; i < samples; ++i) {
      const std::uint64_t at = sample_at(order.words, i);
      words[at] = order.stamp + at;
    }
  }
  if ((order.todo & stamp_order::verify) == 0) return;
  for (std::uint64_t i = 0; i < samples; ++i) {
    const std::uint64_t at = sample_at(order.words, i);
    if (words[at] != order.stamp + at) result = {1, index, at, words[at]};
  }
}

class simulated_stamper final : public stamper {
 public:
  explicit simulated_stamper(sim::machine& machine) : machine_(machine) {}

  // Queued kernels read the shared memory. A lost device runs none any more, and says so by throwing.
  ~simulated_stamper() override {
    for (int d = 0; d < machine_.device_count(); ++d) {
      try {
        machine_.synchronize(d);
      } catch (const std::exception&) {
      }
    }
  }

  void* shared_memory(std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    memory_.emplace_back((bytes + 7) / 8);
    return memory_.back().data();
  }

  void launch(int device, stream_t stream, const stamp_order* orders, unsigned count, stamp_result* result) override {
    machine_.launch(stream, [device, orders, count, result] {
      for (unsigned i = 0; i < count; ++i) carry_out(device, orders[i], i, *result);
    });
  }

 private:
  sim::machine& machine_;
  std::mutex mutex_;
  std::vector<std::vector<std::uint64_t>> memory_;
};

}  // namespace

std::unique_ptr<stamper> make_simulated_stamper(rig& r) { return std::make_unique<simulated_stamper>(*r.machine()); }

std::unique_ptr<stamper> make_stamper(rig& r) {
  return r.simulated() ? make_simulated_stamper(r) : make_cuda_stamper(r);
}

}  // namespace weir::cli
