#pragma once
// One thread of `weir stress`.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "weir/lane.hpp"

#include "cli/granule_map.hpp"
#include "cli/handoff_ring.hpp"
#include "cli/random.hpp"
#include "cli/stamp_queue.hpp"
#include "cli/stress.hpp"

namespace weir::cli {

/// A block in the hands of a thread.
struct stress_block {
  void* address = nullptr;
  std::uint64_t bytes = 0;
  std::uint64_t stamp = 0;        ///< 0: contents are not checked
  std::uint32_t allocate_ns = 0;  ///< 0: not measured
  std::int32_t device = 0;
};

/// Blocks on their way from one thread to the next, and the event behind the work that wrote them.
struct stress_parcel {
  std::array<stress_block, 16> blocks;
  unsigned count = 0;
  int device = 0;
  CUevent written = nullptr;
};
using stress_ring = handoff_ring<stress_parcel, 8>;

/// What the threads of one run share.
struct stress_shared {
  const stress_options& options;
  rig& machine;
  stamper& kernels;
  granule_map& map;
  fault_list& faults;
  std::atomic<bool> stop{false};
  std::vector<std::vector<stream_t>> streams;         ///< of each thread, by device
  std::vector<std::unique_ptr<stress_ring>> inboxes;  ///< of each thread
};

class stress_thread {
 public:
  stress_thread(stress_shared& shared, int number);
  stress_thread(const stress_thread&) = delete;
  stress_thread& operator=(const stress_thread&) = delete;

  /// The thread's whole work, until `stop`; then frees what it holds. Faults go to the list; never throws.
  void run() noexcept;

  // After the thread has ended.
  [[nodiscard]] std::uint64_t pairs() const noexcept { return pairs_; }
  [[nodiscard]] std::uint64_t stamped() const noexcept { return stamped_; }
  [[nodiscard]] std::uint64_t refused() const noexcept { return refused_; }
  [[nodiscard]] const histogram& latency() const noexcept { return latency_; }

 private:
  // One device as this thread sees it.
  struct place {
    weir::lane lane;
    std::unique_ptr<stamp_queue> queue;  // on the lane's stream
    std::unique_ptr<stamp_queue> side;   // on the next thread's stream: for uses that the lane does not know of
    std::vector<stress_block> live;
  };

  void work_mixed();
  void work_pair();
  void work_handoff();
  void free_all();

  place& pick_place();
  bool allocate(place& at, stress_block& out);
  void make_room(place& at, std::uint64_t bytes);
  void check_refusal(const place& at, std::uint64_t bytes);
  void free(place& at, const stress_block& block);
  void use_aside(place& at, const stress_block& block);
  void replace(place& at, unsigned count);
  bool send(place& at);
  bool receive();
  [[nodiscard]] std::uint64_t random_size();
  [[nodiscard]] bool stopping() const noexcept { return shared_.stop.load(std::memory_order_relaxed); }

  stress_shared& shared_;
  int number_;
  random_source random_;
  std::vector<std::uint64_t> sizes_;
  std::vector<place> places_;
  std::uint64_t stamp_every_;
  std::uint64_t stamps_ = 0;
  std::uint64_t steps_ = 0;
  std::uint64_t pairs_ = 0;
  std::uint64_t stamped_ = 0;
  std::uint64_t refused_ = 0;
  histogram latency_;
};

}  // namespace weir::cli
