#pragma once
// A simulated CUDA driver with as many devices as a test wants: Weir, and a trainer built on it, run on a machine with
// no GPU. Device memory faults when the host touches it, streams run in order on threads of their own, kernels are host
// functions that reach memory through `view`, and every rule that the real driver enforces (or crashes over) is
// checked.
//
// What it does not do: GPU code (modules, cuLaunchKernel) and cuMemAllocAsync inside a capture give
// CUDA_ERROR_NOT_SUPPORTED; an exported descriptor is of the device's whole memory file; work of a graph runs one
// operation after the other; there are primary contexts only.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/export.hpp"
#include "weir/types.hpp"

namespace weir::driver {
struct table;
}

namespace weir::sim {

class machine_state;
class stream_core;
struct sleeper;

using event_t = CUevent_st*;

/// One simulated GPU.
struct device_config {
  std::string name = "Weir simulated device";
  std::uint64_t memory = std::uint64_t{4} << 30;  ///< bytes; no host memory is used before a kernel touches it
  int numa_node = 0;                              ///< node the device hangs on; -1: the driver does not know
  std::string pci_bus_id;                         ///< "0000:01:00.0"; empty: made from the device's number
  std::string uuid;  ///< 16 bytes as 32 hexadecimal digits; empty: made from the device's number
  bool vmm = true;   ///< false: a device without virtual memory management
  bool rdma = true;  ///< GPUDirect RDMA with mapped memory
};

/// What a machine is made of. The defaults behave like a current driver and stay small enough for sanitizers.
struct machine_config {
  std::vector<device_config> devices = std::vector<device_config>(2);
  std::vector<std::uint64_t> numa_nodes = {std::uint64_t{16} << 30};  ///< host memory of each node, for host VMM
  std::vector<std::pair<int, int>> no_peer;  ///< pairs of devices without a path; all others can reach each other
  std::uint64_t granularity = std::uint64_t{2} << 20;            ///< of physical handles and mappings; a power of two
  std::uint64_t reservation_alignment = std::uint64_t{2} << 20;  ///< bases are multiples of this...
  bool honour_alignment = true;       ///< ...or of the alignment asked for; false: an asked alignment is ignored
  std::uint64_t max_reservation = 0;  ///< largest single reservation of addresses; 0: no limit
  std::uint64_t reservable = 0;       ///< sum of all reservations; 0: no limit
  bool reuse_handles = true;          ///< a destroyed stream's or event's handle comes back at once, as in the driver;
                                      ///< false: never, so that every use of a dead handle is found
  bool sticky_faults = true;          ///< a kernel's illegal access loses its device (700), as on a GPU
  bool eager = false;                 ///< copies on an idle stream run at once, in the calling thread (faster)
  int driver_version = 13000;         ///< what cuDriverGetVersion says
  bool context_events = true;         ///< false: cuCtxRecordEvent is missing, as in drivers before 12.5
};

/// Results that the simulated driver can be told to give, numbered as CUresult.
enum class result : int {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  not_initialized = 3,
  deinitialized = 4,
  no_device = 100,
  invalid_device = 101,
  invalid_context = 201,
  ecc_uncorrectable = 214,
  invalid_handle = 400,
  not_ready = 600,
  illegal_address = 700,
  context_is_destroyed = 709,
  launch_failed = 719,
  not_permitted = 800,
  not_supported = 801,
  unknown = 999,
};

enum class fault_kind {
  illegal_access,    ///< a kernel or copy touched an address that is not mapped, or not for its device
  dead_handle,       ///< a handle that was destroyed or never made: the real driver may crash
  call_in_callback,  ///< a driver call from a kernel or host function
  busy_unmap,        ///< memory was unmapped while running work was using it
  kernel_failed,     ///< a kernel threw something else: its device is lost, as after a failed launch
  busy_context,      ///< a context was lost with work queued
};

/// Something that must not happen, seen by the machine.
struct fault {
  fault_kind kind = fault_kind::illegal_access;
  std::string text;             ///< one line that names the thing at fault
  int device = -1;              ///< -1: none
  std::uint64_t stream_id = 0;  ///< as cuStreamGetId gives it; 0: none
};

/// Thrown by `view` for memory that the device may not touch. In a kernel, let it pass: the machine deals with it.
struct WEIR_API illegal_access : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A barrier in a stream that the host opens. Copies are the same gate. Destroying a closed gate does not open it.
class WEIR_API gate {
 public:
  gate();
  void open();
  [[nodiscard]] bool is_open() const;

 private:
  friend class machine_state;
  friend class stream_core;
  struct state;
  bool add_sleeper(const sleeper& s) const;
  std::shared_ptr<state> state_;
};

/// Calls of one kind since the machine was made (or `reset_calls`).
struct call_record {
  std::string name;
  std::uint64_t count = 0;
  std::uint64_t failed = 0;          ///< of these, how many did not succeed
  std::chrono::nanoseconds cost{0};  ///< what they would have taken, by the table of costs
};

/// What is alive on the machine: all zero but for what the process itself still holds (C8).
struct live_counts {
  std::uint64_t handles = 0;  ///< physical handles, of devices and host nodes
  std::uint64_t handle_bytes = 0;
  std::uint64_t mappings = 0;  ///< each address of an alias counts
  std::uint64_t mapped_bytes = 0;
  std::uint64_t reservations = 0;
  std::uint64_t reserved_addresses = 0;  ///< bytes of addresses
  std::uint64_t allocations = 0;         ///< cuMemAlloc and cuMemAllocAsync
  std::uint64_t streams = 0;             ///< without the default streams
  std::uint64_t events = 0;
  std::uint64_t graphs = 0;         ///< graphs and executable graphs
  std::uint64_t pinned_blocks = 0;  ///< cuMemHostAlloc and cuMemHostRegister
  std::uint64_t pinned_bytes = 0;
  bool operator==(const live_counts&) const = default;
};

enum class access { read, read_write };

/// A simulated machine. All methods are safe from any thread unless they say otherwise. At most 16 machines exist at
/// one time. Destroying one waits for the kernels that are running, and drops all other queued work.
class WEIR_API machine {
 public:
  explicit machine(machine_config config = {});
  ~machine();
  machine(const machine&) = delete;
  machine& operator=(const machine&) = delete;

  [[nodiscard]] const machine_config& config() const noexcept;
  [[nodiscard]] int device_count() const noexcept;

  /// The driver's functions, for Weir's own layers.
  [[nodiscard]] const driver::table& table() const noexcept;

  // --- streams and kernels -------------------------------------------------------------------------------------------

  /// A new stream of a device (its primary context is made if it has none). Throws std::runtime_error naming the
  /// driver's result. `blocking` streams synchronise with the legacy default stream.
  stream_t create_stream(int device, bool blocking = false);
  /// The stream's queued work still runs. Its handle may come back at once for another stream.
  void destroy_stream(stream_t stream);
  /// Waits until all that the stream was given has run. Throws std::runtime_error if the device was lost.
  void synchronize(stream_t stream);
  /// Waits for all streams of a device, destroyed ones too.
  void synchronize(int device);
  /// Whether all that the stream was given has run.
  bool idle(stream_t stream);

  /// Queues a kernel: a host function that runs on a thread of the machine when the stream reaches it. It may block and
  /// may use `view`; it must not call the driver. While the stream captures, it becomes a node of the graph.
  /// The default streams are those of the calling thread's current device, or of device 0 if it has none.
  void launch(stream_t stream, std::function<void()> kernel);
  /// Queues a kernel that fills [p, p + bytes) with `value`.
  void fill(stream_t stream, void* p, unsigned char value, std::size_t bytes);
  /// Queues a kernel that looks for the first byte of [p, p + bytes) that is not `value`, and tells its offset and
  /// value.
  void expect(stream_t stream, const void* p, unsigned char value, std::size_t bytes,
              std::function<void(std::size_t offset, unsigned char found)> wrong);
  /// Makes the stream wait until the gate is open.
  void wait(stream_t stream, const gate& until);
  /// The same with a new gate.
  gate hold(stream_t stream);
  /// Makes `waiter` wait for all that `first` has been given so far.
  void order(stream_t first, stream_t waiter);

  /// Makes a device the calling thread's current one, as cudaSetDevice does; -1: none. Returns the one before.
  int set_device(int device);
  /// The calling thread's current device, or -1.
  [[nodiscard]] int current_device() const;
  /// Whether the device's primary context exists.
  [[nodiscard]] bool context_active(int device) const;

  // --- memory --------------------------------------------------------------------------------------------------------

  /// Host address of [p, p + bytes) of device memory, for work that runs on `device`: checks that every byte is mapped,
  /// and accessible from that device for that kind of access. Throws `illegal_access` and records a fault otherwise.
  /// Inside a kernel the memory stays readable until the kernel ends even if it is unmapped (which is a fault by
  /// itself); outside, the address is good until the memory is unmapped. Pinned host memory is its own view.
  void* view(int device, const void* p, std::size_t bytes, access kind = access::read_write);
  /// Whether `view` would succeed. Records nothing.
  [[nodiscard]] bool accessible(int device, const void* p, std::size_t bytes, access kind = access::read_write) const;

  /// Bytes of the device's memory that physical handles and allocations hold.
  [[nodiscard]] std::uint64_t reserved_bytes(int device) const;
  /// The same for a host node's physical handles.
  [[nodiscard]] std::uint64_t reserved_host_bytes(int node) const;
  /// Memory of the device that other processes hold from now on.
  void other_process_holds(int device, std::uint64_t bytes);
  [[nodiscard]] live_counts live() const;

  // --- faults, failures, costs ---------------------------------------------------------------------------------------

  /// Faults since the machine was made, oldest first (at most 1000 are kept).
  [[nodiscard]] std::vector<fault> faults() const;
  void clear_faults();
  /// Called at each fault, in the thread that ran into it, with nothing held. An empty function takes the hook away.
  void on_fault(std::function<void(const fault&)> hook);

  /// Makes calls of that name fail: the k-th from now (1: the next), and the `count` - 1 after it. A call that is made
  /// to fail changes nothing. `device` >= 0 counts only calls made while that device is current or that name it.
  /// Several orders may be given. Throws std::invalid_argument for a name that Weir's table does not have.
  void fail(std::string_view call, std::uint64_t k, result with = result::out_of_memory, std::uint64_t count = 1,
            int device = -1);
  /// Forgets all orders to fail.
  void clear_failures();

  /// Every later call that concerns the device gives `with`, and its queued work is dropped: what an illegal access or
  /// a hardware error does.
  void kill(int device, result with = result::illegal_address);
  /// Device reset: its context, streams, events, allocations and physical memory are gone; their handles are dead. The
  /// device works again. Addresses that were mapped must still be unmapped and freed.
  void reset(int device);

  /// Calls by name; only those with a count.
  [[nodiscard]] std::vector<call_record> calls() const;
  [[nodiscard]] std::uint64_t calls(std::string_view name) const;
  void reset_calls();

  /// Charges each call the time measured on an H200 (by handle size where it matters). Only counted, in `calls()`,
  /// unless `sleep_scale` is above 0: then each call also takes that share of its cost, one at a time per device as the
  /// driver does it. Calls of a cost below 1 us never sleep.
  void use_default_costs(double sleep_scale = 0.0);
  /// Charges each call of that name `cost`, and makes it take that long. On one device or, with -1, on all.
  void set_cost(std::string_view call, std::chrono::nanoseconds cost, int device = -1);

 private:
  std::unique_ptr<machine_state> state_;
};

/// As machine::view, on the machine whose kernel is running or, outside of kernels, the one that `p` belongs to.
WEIR_API void* view(int device, const void* p, std::size_t bytes, access kind = access::read_write);

/// `view` for a typed array.
template <class T>
T* view_as(int device, T* p, std::size_t count = 1) {
  return static_cast<T*>(view(device, p, count * sizeof(T)));
}

/// Inside a kernel or host function of a simulated stream: the device it runs on. Outside: -1.
WEIR_API int kernel_device() noexcept;

/// As machine::launch, on the machine that the stream belongs to. Not for the default streams.
WEIR_API void launch(stream_t stream, std::function<void()> kernel);

}  // namespace weir::sim
