#include "vm/device.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "weir/error.hpp"

#include "driver/error.hpp"
#include "heap/units.hpp"
#include "vm/lane.hpp"
#include "vm/pending_nodes.hpp"
#include "vm/use_records.hpp"

namespace weir::vm {

namespace {

[[noreturn]] void refuse(errc code, int ordinal, const std::string& why) {
  throw error(code, "device " + std::to_string(ordinal) + ": " + why);
}

/// Results by which the driver says that it will not make a handle of that kind, though it may make another.
constexpr bool refuses_kind(CUresult r) {
  return r == CUDA_ERROR_NOT_SUPPORTED || r == CUDA_ERROR_NOT_PERMITTED || r == CUDA_ERROR_INVALID_VALUE ||
         r == CUDA_ERROR_INVALID_DEVICE;
}

}  // namespace

device::device(const driver::table& functions, int ordinal, const settings& s)
    : limit(s.limit),
      access_set(ordinal >= 0 && ordinal < 64 ? std::uint64_t{1} << ordinal : 0),
      events(api_),
      api_(functions, counters_),
      ordinal_(ordinal),
      settings_(s) {
  const auto check = [&](std::string_view call, CUresult r) {
    if (r != CUDA_SUCCESS) refuse(errc::driver_error, ordinal, driver::describe(functions, call, r));
  };
  if (!pending_nodes().prepare() || !prepare_uses()) {
    refuse(errc::driver_error, ordinal, "the system refuses host memory for the records of pending blocks");
  }
  if (ordinal < 0 || ordinal >= 64) refuse(errc::invalid_argument, ordinal, "there is no such device");
  check("cuDeviceGet", api_.cuDeviceGet(&handle_, ordinal));
  if (attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) == 0) {
    refuse(errc::not_supported, ordinal, "has no virtual memory management, which Weir needs");
  }
  std::size_t memory = 0;
  check("cuDeviceTotalMem", api_.cuDeviceTotalMem(&memory, handle_));
  capacity_ = memory;
  rdma_ = attribute(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED) != 0;
  exportable_ = attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) != 0;
  std::size_t granularity = 0;
  const CUmemAllocationProp wanted = properties();
  check("cuMemGetAllocationGranularity",
        api_.cuMemGetAllocationGranularity(&granularity, &wanted, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  granularity_ = granularity;
  if (granularity == 0 || heap::stride_bytes % granularity != 0) {
    refuse(errc::not_supported, ordinal,
           "physical memory comes in units of " + std::to_string(granularity) + " bytes; 2 MiB is no multiple of that");
  }
}

device::~device() {
  if (context() == nullptr) return;
  // What lanes still have in flight ends with the device. Errors are nobody's concern here: they mean that the driver
  // is gone, and everything with it.
  bool gone = lost.load();
  if (!gone) {
    const driver_scope scope(*this);
    gone = driver::is_gone(scope.result());
    if (scope.result() == CUDA_SUCCESS) {
      forget_pending(*this);
      forget_uses(*this);
      lanes.each([&](lane& l) { l.order.all_reached(events); });
      events.clear();
    }
  }
  if (!gone) api_.cuDevicePrimaryCtxRelease(handle_);
}

CUresult device::ensure_context() noexcept {
  if (context() != nullptr) return CUDA_SUCCESS;
  if (lost.load(std::memory_order_relaxed)) return lost_error();
  CUcontext mine = nullptr;
  const CUresult retained = note(api_.cuDevicePrimaryCtxRetain(&mine, handle_));
  if (retained != CUDA_SUCCESS) return retained;
  CUcontext none = nullptr;
  if (!context_.compare_exchange_strong(none, mine, std::memory_order_acq_rel, std::memory_order_acquire)) {
    api_.cuDevicePrimaryCtxRelease(handle_);  // another thread was faster; one count is enough
  }
  return CUDA_SUCCESS;
}

CUresult device::note(CUresult result) noexcept {
  if (driver::is_sticky(result)) {
    CUresult none = CUDA_SUCCESS;
    lost_error_.compare_exchange_strong(none, result, std::memory_order_relaxed);
    lost.store(true, std::memory_order_release);
  }
  return result;
}

// --- bytes -----------------------------------------------------------------------------------------------------------

bool device::affords(std::uint64_t bytes) const noexcept {
  const std::uint64_t own = limit.load(std::memory_order_relaxed);
  const std::uint64_t most = own == 0 ? capacity_ : std::min(own, capacity_);
  const std::uint64_t held = reserved();
  return held <= most && bytes <= most - held;
}

bool device::charge(std::uint64_t bytes) noexcept {
  std::uint64_t held = reserved_.load(std::memory_order_relaxed);
  std::uint64_t then = 0;
  do {
    const std::uint64_t own = limit.load(std::memory_order_relaxed);
    const std::uint64_t most = own == 0 ? capacity_ : std::min(own, capacity_);
    if (held > most || bytes > most - held) return false;
    then = held + bytes;
  } while (!reserved_.compare_exchange_weak(held, then, std::memory_order_relaxed));
  std::uint64_t peak = reserved_peak_.load(std::memory_order_relaxed);
  while (peak < then && !reserved_peak_.compare_exchange_weak(peak, then, std::memory_order_relaxed)) {
  }
  return true;
}

// --- physical handles --------------------------------------------------------------------------------------------

int device::attribute(CUdevice_attribute which) const noexcept {
  int value = 0;
  return api_.cuDeviceGetAttribute(&value, which, handle_) == CUDA_SUCCESS ? value : 0;
}

CUmemAllocationProp device::properties() const noexcept {
  CUmemAllocationProp p{};
  p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  p.location.id = ordinal_;
  p.allocFlags.gpuDirectRDMACapable = rdma_ ? 1 : 0;
  if (exportable_.load(std::memory_order_relaxed)) p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return p;
}

CUresult device::create(CUmemGenericAllocationHandle& out, std::uint64_t bytes) noexcept {
  CUmemAllocationProp p = properties();
  CUresult made = api_.cuMemCreate(&out, bytes, &p, 0u);
  if (refuses_kind(made) && p.requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE) {
    // A container may forbid what the attribute promises.
    p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
    made = api_.cuMemCreate(&out, bytes, &p, 0u);
    if (made == CUDA_SUCCESS) exportable_.store(false, std::memory_order_relaxed);
  }
  return note(made);
}

CUresult device::set_access(std::uint64_t address, std::uint64_t bytes) noexcept {
  std::array<CUmemAccessDesc, 64> who;
  std::size_t count = 0;
  const std::uint64_t set = access_set.load(std::memory_order_acquire) | std::uint64_t{1} << ordinal_;
  for (int i = 0; i < 64; ++i) {
    if ((set >> i & 1) == 0) continue;
    who[count].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    who[count].location.id = i;
    who[count].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    ++count;
  }
  return note(api_.cuMemSetAccess(address, bytes, who.data(), count));
}

}  // namespace weir::vm
