#pragma once
// The inside of a simulated machine: its parts, and one method per driver call, named like it.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <vector>

#include "driver/sim/accounting.hpp"
#include "driver/sim/address_space.hpp"
#include "driver/sim/capture.hpp"
#include "driver/sim/fault_log.hpp"
#include "driver/sim/handle_pool.hpp"
#include "driver/sim/handle_table.hpp"
#include "driver/sim/objects.hpp"
#include "driver/sim/pinned_memory.hpp"
#include "driver/sim/stream_core.hpp"
#include "driver/sim/thread_state.hpp"
#include "driver/table.hpp"

namespace weir::sim {

/// A stream as a call sees it: looked up, alive, its device not lost.
struct stream_ref {
  stream_slot* slot = nullptr;
  std::shared_ptr<stream_core> core;
  device_state* device = nullptr;
  bool legacy = false;
};

class machine_state final : public stream_host {
 public:
  explicit machine_state(machine_config c);
  ~machine_state();
  machine_state(const machine_state&) = delete;
  machine_state& operator=(const machine_state&) = delete;

  // One method per driver call, with its exact signature.
// NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration's name takes none
#define WEIR_SIM_CALL(name, version, presence, timing) std::remove_pointer_t<PFN_##name##_v##version> name;
  WEIR_DRIVER_CALLS(WEIR_SIM_CALL)
#undef WEIR_SIM_CALL

  void run(const kernel& work, stream_core& on) override;
  [[nodiscard]] bool lost(int device) const noexcept override {
    return devices[static_cast<std::size_t>(device)]->error.load(std::memory_order_acquire) != 0 ||
           stopping.load(std::memory_order_acquire);
  }

  // --- threads and contexts (machine_contexts.cpp) ---
  thread_view& me();
  static void thread_ends(unsigned slot, thread_view& view);
  context_state* find_context(CUcontext handle) const;
  /// The current context, alive and its device not lost.
  CUresult current(context_state*& out);
  [[nodiscard]] int current_device();
  CUresult device_at(CUdevice index, device_state*& out) const;
  void activate(context_state& c);  // with its mutex held
  void deactivate(context_state& c, bool because_reset);
  void kill(int device, CUresult with);
  void reset(int device);

  // --- streams (machine_streams.cpp) ---
  CUresult resolve(CUstream handle, stream_ref& out);
  CUresult make_stream(context_state& c, unsigned flags, int priority, stream_slot*& out);
  void retire_stream(stream_slot& slot);
  stream_slot* default_stream_of_thread(context_state& c);
  /// Adds to the stream, or to the capture it is in.
  CUresult submit(const stream_ref& on, operation op);
  /// Makes the stream's next operation come after what the legacy stream rules ask for.
  void order_with_legacy(const stream_ref& on);
  std::vector<std::shared_ptr<stream_core>> cores_of(context_state& c);
  /// Waits for all work of the device (its error afterwards).
  CUresult wait_for_device(device_state& d);

  // --- captures (machine_captures.cpp) ---
  /// For calls that some captures forbid: fails, and invalidates those captures.
  CUresult refuse_unsafe();
  std::shared_ptr<capture> capture_of(stream_core& core);
  /// Captures that have a stream of that device; only blocking ones, if asked.
  std::vector<std::shared_ptr<capture>> captures_on(int device, bool blocking_only);

  // --- memory (machine_memory.cpp, machine_view.cpp) ---
  handle_table* table_of(std::uint64_t handle);
  std::shared_ptr<physical> find_physical(std::uint64_t handle);
  void* view(int device, std::uint64_t at, std::uint64_t bytes, access kind, bool any_owner);
  [[nodiscard]] bool can_view(int device, std::uint64_t at, std::uint64_t bytes, access kind);
  /// Whether the address belongs to memory of this machine, device or pinned.
  [[nodiscard]] bool knows(std::uint64_t at) const;
  void unpin(running_kernel& kernel);
  CUresult allocate_plain(context_state& c, std::uint64_t bytes, CUdeviceptr& out);
  std::shared_ptr<reservation> take_plain(CUdeviceptr at);
  void free_plain(const std::shared_ptr<reservation>& range);
  void unmap(reservation& range, const std::shared_ptr<mapping>& m, std::string_view call);
  [[nodiscard]] bool peers(int from, int to) const;
  [[nodiscard]] live_counts live();

  // --- the way in of every call (machine_entry.cpp) ---
  /// A result other than success: the call must not be made.
  CUresult enter(driver::call c, thread_state& thread);
  /// `device`: whom the call concerns.
  CUresult planned_failure(driver::call c, int device) { return failures.check(c, device); }
  void charge(driver::call c, int device, thread_state& thread);
  void hint(std::uint64_t nanoseconds) { me().cost_hint = nanoseconds; }

  const machine_config config;
  driver::table functions;
  unsigned slot = 0;
  std::uint64_t serial = 0;
  std::atomic<bool> initialized{false};
  std::atomic<bool> stopping{false};

  std::vector<std::unique_ptr<device_state>> devices;
  std::vector<std::shared_ptr<backing>> host_nodes;
  std::vector<std::unique_ptr<handle_table>> handles;  // of devices, then of nodes
  std::vector<std::uint64_t> peer_bits;                // by device

  address_space addresses;
  pinned_memory pinned;
  std::mutex plain_mutex;
  std::map<std::uint64_t, std::shared_ptr<reservation>> plain;  // cuMemAlloc and cuMemAllocAsync, by base

  handle_pool<stream_slot> streams;
  handle_pool<event_slot> events;
  handle_pool<graph_slot> graphs;
  std::atomic<std::uint64_t> next_id{1};  // of streams, contexts, captures: never reused
  std::shared_ptr<executor> threads = std::make_shared<executor>();

  std::mutex captures_mutex;
  std::vector<std::shared_ptr<capture>> captures;  // open ones
  std::atomic<int> open_captures{0};

  call_ledger ledger;
  failure_plan failures;
  cost_plan costs;
  fault_log faults;
};

/// Puts a machine into a free slot and fills its table with that slot's functions. Throws if all slots are taken.
void register_machine(machine_state& m);
void unregister_machine(machine_state& m);
/// Calls f with the slot's machine, or null, which then cannot go away meanwhile.
void with_machine(unsigned slot, const std::function<void(machine_state*)>& f);

}  // namespace weir::sim
