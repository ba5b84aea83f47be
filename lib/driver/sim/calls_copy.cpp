// Driver calls: copies, fills, and values written and awaited in stream order. Addresses are resolved when the
// operation runs, not when it is queued.

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "driver/sim/machine_state.hpp"

namespace weir::sim {
namespace {

void* host(CUdeviceptr at) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(at)); }

// What one end of a copy is: memory that the machine knows, or plain host memory.
enum class place { known, pageable };

struct copy_plan {
  CUdeviceptr to = 0;
  CUdeviceptr from = 0;
  std::size_t bytes = 0;
};

// A copy as the stream runs it.
void copy_now(machine_state& m, int device, const copy_plan& c, place to, place from) {
  void* target = to == place::pageable ? host(c.to) : m.view(device, c.to, c.bytes, access::read_write, true);
  const void* source = from == place::pageable ? host(c.from) : m.view(device, c.from, c.bytes, access::read, true);
  std::memmove(target, source, c.bytes);
}

CUresult queue_copy(machine_state& m, CUstream on, const copy_plan& c, place to, place from) {
  stream_ref s;
  if (const CUresult result = m.resolve(on, s); result != CUDA_SUCCESS) return result;
  if (c.bytes == 0) return CUDA_SUCCESS;
  machine_state* machine = &m;
  const int device = s.device->index;
  if (from == place::pageable) {
    // The driver stages pageable memory: the source may be reused when the call returns.
    const auto* bytes = static_cast<const char*>(host(c.from));
    auto staged = std::make_shared<std::vector<char>>(bytes, bytes + c.bytes);
    return m.submit(s, kernel{[machine, device, c, to, staged] {
                                copy_plan from_stage = c;
                                from_stage.from = reinterpret_cast<std::uintptr_t>(staged->data());
                                copy_now(*machine, device, from_stage, to, place::pageable);
                              },
                              device, true});
  }
  const CUresult result =
      m.submit(s, kernel{[machine, device, c, to, from] { copy_now(*machine, device, c, to, from); }, device, true});
  if (result != CUDA_SUCCESS || to != place::pageable || m.capture_of(*s.core) != nullptr) return result;
  // Into pageable memory the call waits.
  s.core->wait_for(s.core->tail().sequence);
  return static_cast<CUresult>(s.device->error.load(std::memory_order_acquire));
}

template <class T>
CUresult queue_fill(machine_state& m, CUdeviceptr at, T value, std::size_t count, CUstream on) {
  stream_ref s;
  if (at % sizeof(T) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = m.resolve(on, s); result != CUDA_SUCCESS) return result;
  if (count == 0) return CUDA_SUCCESS;
  machine_state* machine = &m;
  const int device = s.device->index;
  return m.submit(
      s, kernel{[machine, device, at, value, count] {
                  auto* p = static_cast<T*>(machine->view(device, at, count * sizeof(T), access::read_write, true));
                  std::fill_n(p, count, value);
                },
                device, true});
}

place place_of(const machine_state& m, CUdeviceptr at) { return m.knows(at) ? place::known : place::pageable; }

// A 64-bit word that streams and the host share.
std::uint64_t load_word(const void* p) {
  return __atomic_load_n(static_cast<const std::uint64_t*>(p), __ATOMIC_ACQUIRE);
}

bool satisfied(std::uint64_t found, std::uint64_t wanted, unsigned how) {
  switch (how) {
    case CU_STREAM_WAIT_VALUE_GEQ:
      return static_cast<std::int64_t>(found - wanted) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
      return found == wanted;
    case CU_STREAM_WAIT_VALUE_AND:
      return (found & wanted) != 0;
    default:
      return ~(found | wanted) != 0;
  }
}

}  // namespace

CUresult machine_state::cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream on) {
  return queue_copy(*this, on, {to, from, bytes}, place_of(*this, to), place_of(*this, from));
}

CUresult machine_state::cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, std::size_t bytes, CUstream on) {
  const CUdeviceptr source = reinterpret_cast<std::uintptr_t>(from);
  return queue_copy(*this, on, {to, source, bytes}, place::known, place_of(*this, source));
}

CUresult machine_state::cuMemcpyDtoHAsync(void* to, CUdeviceptr from, std::size_t bytes, CUstream on) {
  const CUdeviceptr target = reinterpret_cast<std::uintptr_t>(to);
  return queue_copy(*this, on, {target, from, bytes}, place_of(*this, target), place::known);
}

CUresult machine_state::cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream on) {
  return queue_copy(*this, on, {to, from, bytes}, place::known, place::known);
}

CUresult machine_state::cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                                          CUcontext from_context, std::size_t bytes, CUstream on) {
  if (find_context(to_context) == nullptr || find_context(from_context) == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return queue_copy(*this, on, {to, from, bytes}, place::known, place::known);
}

CUresult machine_state::cuMemsetD8Async(CUdeviceptr at, unsigned char value, std::size_t count, CUstream on) {
  return queue_fill(*this, at, value, count, on);
}

CUresult machine_state::cuMemsetD32Async(CUdeviceptr at, unsigned value, std::size_t count, CUstream on) {
  return queue_fill(*this, at, value, count, on);
}

CUresult machine_state::cuStreamWriteValue64(CUstream on, CUdeviceptr at, cuuint64_t value, unsigned flags) {
  stream_ref s;
  if (at % 8 != 0 || (flags & ~1U) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = resolve(on, s); result != CUDA_SUCCESS) return result;
  const int device = s.device->index;
  return submit(s, kernel{[this, device, at, value] {
                            void* p = view(device, at, 8, access::read_write, false);
                            __atomic_store_n(static_cast<std::uint64_t*>(p), value, __ATOMIC_RELEASE);
                          },
                          device, true});
}

// The host may write the word at any time, so the stream's thread polls it.
CUresult machine_state::cuStreamWaitValue64(CUstream on, CUdeviceptr at, cuuint64_t value, unsigned flags) {
  stream_ref s;
  if (at % 8 != 0 || flags > CU_STREAM_WAIT_VALUE_NOR) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = resolve(on, s); result != CUDA_SUCCESS) return result;
  const int device = s.device->index;
  return submit(s, kernel{[this, device, at, value, flags] {
                            const void* p = view(device, at, 8, access::read, false);
                            while (!satisfied(load_word(p), value, flags) && !lost(device)) {
                              std::this_thread::sleep_for(std::chrono::microseconds(50));
                            }
                          },
                          device, false});
}

}  // namespace weir::sim
