// Driver calls: streams.

#include "driver/sim/machine_state.hpp"

namespace weir::sim {
namespace {

CUstream handle_of(stream_slot* s) { return static_cast<CUstream>(static_cast<void*>(s)); }

}  // namespace

CUresult machine_state::cuStreamCreateWithPriority(CUstream* out, unsigned flags, int priority) {
  context_state* c = nullptr;
  if (out == nullptr || (flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = current(c); result != CUDA_SUCCESS) return result;
  stream_slot* made = nullptr;
  if (const CUresult result = make_stream(*c, flags, priority, made); result != CUDA_SUCCESS) return result;
  *out = handle_of(made);
  return CUDA_SUCCESS;
}

CUresult machine_state::cuStreamCreate(CUstream* out, unsigned flags) {
  return cuStreamCreateWithPriority(out, flags, 0);
}

CUresult machine_state::cuStreamDestroy(CUstream handle) {
  if (handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD)
    return CUDA_ERROR_INVALID_HANDLE;
  stream_ref s;
  const CUresult result = resolve(handle, s);
  if (s.core == nullptr) return result;
  if (const auto c = capture_of(*s.core)) c->invalidate();
  retire_stream(*s.slot);
  streams.give_back(s.slot);
  return result;
}

CUresult machine_state::cuStreamQuery(CUstream handle) {
  stream_ref s;
  if (const CUresult result = resolve(handle, s); result != CUDA_SUCCESS) return result;
  if (const auto c = capture_of(*s.core)) {
    c->invalidate();
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (const CUresult result = refuse_unsafe(); result != CUDA_SUCCESS) return result;
  if (s.legacy) order_with_legacy(s);
  return s.core->busy() ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CUresult machine_state::cuStreamSynchronize(CUstream handle) {
  stream_ref s;
  if (const CUresult result = resolve(handle, s); result != CUDA_SUCCESS) return result;
  if (const auto c = capture_of(*s.core)) {
    c->invalidate();
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (const CUresult result = refuse_unsafe(); result != CUDA_SUCCESS) return result;
  if (s.legacy) order_with_legacy(s);
  s.core->wait_for(s.core->tail().sequence);
  return static_cast<CUresult>(s.device->error.load(std::memory_order_acquire));
}

CUresult machine_state::cuStreamGetId(CUstream handle, unsigned long long* id) {
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  // A created stream's id takes no lock: this is asked at every raw-stream call.
  const stream_slot* s = open_captures.load(std::memory_order_acquire) == 0 ? streams.find(handle) : nullptr;
  if (s != nullptr) {
    const std::uint64_t known = s->id.load(std::memory_order_acquire);
    if (known != 0) {
      *id = known;
      return static_cast<CUresult>(
          devices[static_cast<std::size_t>(s->device.load(std::memory_order_relaxed))]->error.load());
    }
  }
  stream_ref found;
  if (const CUresult result = resolve(handle, found); result != CUDA_SUCCESS) return result;
  // Measured: a stream that is capturing has no id to tell, in any mode, and the question spoils the capture.
  if (const auto c = capture_of(*found.core)) {
    c->invalidate();
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  *id = found.core->id();
  return CUDA_SUCCESS;
}

CUresult machine_state::cuStreamGetCtx(CUstream handle, CUcontext* out) {
  stream_ref s;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = resolve(handle, s); result != CUDA_SUCCESS) return result;
  *out = static_cast<CUcontext>(static_cast<void*>(&s.device->context));
  return CUDA_SUCCESS;
}

CUresult machine_state::cuLaunchHostFunc(CUstream handle, CUhostFn function, void* data) {
  stream_ref s;
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = resolve(handle, s); result != CUDA_SUCCESS) return result;
  return submit(s, kernel{[function, data] { function(data); }, s.device->index, false});
}

// Kernels of a simulated machine are host functions (machine::launch): it has no use for the GPU's own code.
CUresult machine_state::cuModuleLoadData(CUmodule*, const void*) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult machine_state::cuModuleUnload(CUmodule) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult machine_state::cuModuleGetFunction(CUfunction*, CUmodule, const char*) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult machine_state::cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                       CUstream, void**, void**) {
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace weir::sim
