#pragma once
// weir::service: owns all devices, lanes and pools. One per process as a rule (`service::global()`), more for tests.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "weir/config.hpp"
#include "weir/error.hpp"
#include "weir/export.hpp"
#include "weir/lane.hpp"
#include "weir/pool.hpp"
#include "weir/statistics.hpp"
#include "weir/types.hpp"

namespace weir {

namespace sim {
class machine;
}

/// What a device is. `numa_node` and PCI address are as the driver tells them; -1 and "" where it does not.
struct device_info {
  int index = 0;  ///< as in CUDA, after CUDA_VISIBLE_DEVICES
  std::string name;
  std::string uuid;         ///< "GPU-..." or "MIG-..."
  std::string pci_address;  ///< "0000:1b:00.0"
  int numa_node = -1;
  int compute_major = 0;
  int compute_minor = 0;
  std::uint64_t memory = 0;       ///< bytes, total
  std::uint64_t memory_free = 0;  ///< bytes, now, as the driver counts
  std::uint64_t granularity = 0;  ///< bytes, of a physical handle
  bool vmm = false;               ///< virtual memory management: what Weir needs
  bool simulated = false;
};

/// The block that an address lies in.
struct block_info {
  void* base = nullptr;
  std::size_t bytes = 0;  ///< usable bytes of the block (at least what was asked for)
  int device = 0;
  weir::stream_t stream = nullptr;  ///< of the block's lane
  bool live = true;                 ///< false: freed, and still pending
};

/// A fault of the caller that was detected and had no effect (C10).
struct misuse {
  enum class kind { double_free, foreign_pointer, interior_pointer, other_service, bad_record_use, free_in_capture };
  kind what = kind::foreign_pointer;
  const void* address = nullptr;
  std::string_view text;  ///< one line that names fault and block; valid during the call
};

/// Something that happened inside the service, for logs.
struct event {
  log_level level = log_level::info;
  int device = -1;
  std::string_view text;  ///< one line; valid during the call
};

/// Thread safety: every member may be called from any thread at any time, except the destructor. Members that make
/// driver calls leave the caller's device, context, capture and last error as they were (C7). In a forked child every
/// call fails with `not_after_fork` and frees do nothing.
class WEIR_API service {
 public:
  /// Uses the driver that `c.driver` names. Throws `error`: no device, driver too old, a device without VMM.
  /// Devices are touched (a context retained) only when first allocated on.
  explicit service(const config& c = config::from_environment());

  /// The same over a simulated machine of the caller's making (weir/simulation.hpp), which must outlive it.
  service(const config& c, std::shared_ptr<sim::machine> machine);

  /// All lanes, pools and blocks of the service end with it: blocks still live are reported as an event and their
  /// memory goes back to the driver once the GPU has passed their streams; later frees of them are misuse, not crashes.
  ~service();
  service(const service&) = delete;
  service& operator=(const service&) = delete;

  /// The process's service, made from the environment at the first call and never destroyed.
  static service& global();

  [[nodiscard]] const config& configuration() const noexcept;
  [[nodiscard]] int device_count() const noexcept;
  [[nodiscard]] device_info info(int device) const;

  // --- lanes -----------------------------------------------------------------------------------------------------

  /// The lane of a device, stream and pool; made when first asked for. Legacy (null) and per-thread default streams
  /// work; a lane of the latter serves the thread that asked. About 0.2 us when it exists. Throws `error`.
  [[nodiscard]] weir::lane lane(int device, stream_t stream, const weir::pool& pool = {});

  /// A pool of its own, named for messages. Lives until the last handle is gone.
  [[nodiscard]] weir::pool make_pool(std::string_view name);

  // --- raw-stream calls: for callers that only have a stream; each asks the driver who the stream is (50 ns) --------

  [[nodiscard]] void* allocate(std::size_t bytes, int device, stream_t stream,
                               std::size_t alignment = default_alignment);
  [[nodiscard]] void* try_allocate(std::size_t bytes, int device, stream_t stream,
                                   std::size_t alignment = default_alignment) noexcept;

  /// In the order of the block's own lane; total (C4).
  void deallocate(void* block) noexcept;
  /// In the order of `stream`, a stream of the block's device. Never throws; asks the driver, so not for host
  /// callbacks.
  void deallocate(void* block, stream_t stream) noexcept;

  // --- order -----------------------------------------------------------------------------------------------------

  /// Says that `stream` uses the block which `address` lies in: an event is recorded now, and a free waits for it.
  /// Covers what the stream was given before this call. Throws `error`; an unknown address is misuse.
  void record_use(const void* address, stream_t stream);

  /// Says that `stream` (of `device`) is about to be destroyed: its lanes' memory is fenced and may serve others.
  void retire(int device, stream_t stream);

  /// Says that all work of the device is done, whatever the streams: all pending memory of it is reusable.
  void quiesced(int device);

  /// Collects pending frees whose events are reached. Cheap; the maintenance thread and slow paths do it too.
  void collect() noexcept;

  // --- memory ----------------------------------------------------------------------------------------------------

  /// Gives cached memory of the device back to the driver until at most `keep` bytes are reserved or nothing free is
  /// left. Memory that queued work may still touch follows when the GPU has passed. Returns the bytes given back now.
  std::uint64_t trim(int device, std::uint64_t keep = 0);
  /// All devices.
  std::uint64_t trim();

  /// Most physical memory (bytes) that Weir holds on the device, 0: the device's own. Below what is held now: nothing
  /// grows until it is under the limit again.
  void limit(int device, std::uint64_t bytes);
  [[nodiscard]] std::uint64_t limit(int device) const;

  /// While a scope lives, no trim, unmap or release of any device happens (nor a wait for pending frees).
  class WEIR_API trim_hold {
   public:
    trim_hold(trim_hold&& other) noexcept;
    trim_hold& operator=(trim_hold&&) = delete;
    ~trim_hold();

   private:
    friend class service;
    explicit trim_hold(service* s) noexcept;
    service* service_;
  };
  [[nodiscard]] trim_hold hold_trims() noexcept;

  // --- observation -----------------------------------------------------------------------------------------------

  /// The block that `address` lies in; false if it lies in no live or pending block of this service. Lock-free,
  /// constant time, any thread.
  [[nodiscard]] bool query(const void* address, block_info& out) const noexcept;

  [[nodiscard]] weir::statistics statistics() const;

  /// One page of text: each device's live, cached, pending, free, reserved bytes, peaks, driver calls.
  [[nodiscard]] std::string summary() const;

  /// Verifies the heap's own records against each other and against the driver's count (C8). Call at a quiet point.
  /// Returns "" or the first fault found.
  [[nodiscard]] std::string check();

  // --- hooks: called with nothing held; they may call the service again. An empty function removes a hook. ---------

  /// Asked when a request is about to fail: free something, return true to have the search repeated. At most 8 rounds
  /// a request. Also before a `try_` form returns null.
  using out_of_memory_hook = std::function<bool(const out_of_memory_report&)>;
  void on_out_of_memory(out_of_memory_hook hook);

  /// Told of misuse. Default: one line on stderr and the `misuses` counter (which counts in any case).
  using misuse_hook = std::function<void(const misuse&)>;
  void on_misuse(misuse_hook hook);

  /// Told of events at `level` and graver. Default: stderr, at `config.log`.
  using event_hook = std::function<void(const event&)>;
  void on_event(event_hook hook, log_level level = log_level::info);

 private:
  friend class service_detail::access;
  struct implementation;
  std::unique_ptr<implementation> implementation_;
};

}  // namespace weir
