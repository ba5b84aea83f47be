// Driver calls: stream capture and graphs.

#include <algorithm>

#include "driver/sim/machine_state.hpp"

namespace weir::sim {
namespace {

CUgraph graph_of(graph_slot* g) { return static_cast<CUgraph>(static_cast<void*>(g)); }
CUgraphExec exec_of(graph_slot* g) { return static_cast<CUgraphExec>(static_cast<void*>(g)); }

// The streams work as before; the events that led out of the capture stay captured.
void leave(const std::vector<std::shared_ptr<stream_core>>& members, const std::shared_ptr<capture>& c) {
  for (const auto& core : members) {
    const std::lock_guard lock(core->capture_mutex);
    if (core->capturing != c) continue;
    core->capturing.reset();
    core->in_capture.store(false, std::memory_order_release);
  }
}

}  // namespace

CUresult machine_state::cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  if (mode == nullptr || *mode < CU_STREAM_CAPTURE_MODE_GLOBAL || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
    return CUDA_ERROR_INVALID_VALUE;
  std::swap(*mode, me().mode);
  return CUDA_SUCCESS;
}

CUresult machine_state::cuStreamBeginCapture(CUstream handle, CUstreamCaptureMode mode) {
  stream_ref s;
  if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = resolve(handle, s); result != CUDA_SUCCESS) return result;
  if (s.legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  const std::lock_guard registry(captures_mutex);
  const std::lock_guard lock(s.core->capture_mutex);
  if (s.core->capturing != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  auto made = std::make_shared<capture>(next_id.fetch_add(1), mode, this_thread().number, s.core);
  s.core->capturing = made;
  s.core->in_capture.store(true, std::memory_order_release);
  captures.push_back(std::move(made));
  open_captures.fetch_add(1, std::memory_order_acq_rel);
  return CUDA_SUCCESS;
}

CUresult machine_state::cuStreamEndCapture(CUstream handle, CUgraph* out) {
  stream_ref s;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = nullptr;
  if (const CUresult result = resolve(handle, s); result != CUDA_SUCCESS) return result;
  const auto c = capture_of(*s.core);
  if (c == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (c->origin() != s.core.get()) {
    c->invalidate();
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  }
  if (c->mode() != CU_STREAM_CAPTURE_MODE_RELAXED && c->thread() != this_thread().number)
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  const bool joined = c->joined();
  std::vector<std::shared_ptr<stream_core>> members;
  graph_nodes nodes = c->end(members);
  leave(members, c);
  {
    const std::lock_guard registry(captures_mutex);
    captures.erase(std::remove(captures.begin(), captures.end(), c), captures.end());
    open_captures.fetch_sub(1, std::memory_order_acq_rel);
  }
  if (!c->valid()) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (!joined) return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  graph_slot* g = graphs.take();
  if (g == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::lock_guard lock(g->mutex);
  g->nodes = std::make_shared<const graph_nodes>(std::move(nodes));
  g->last_launch = {};
  *out = graph_of(g);
  return CUDA_SUCCESS;
}

CUresult machine_state::cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  return cuStreamGetCaptureInfo(handle, status, nullptr, nullptr, nullptr, nullptr, nullptr);
}

// The graph under construction and its nodes are not shown: nothing in the table could use them.
CUresult machine_state::cuStreamGetCaptureInfo(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id,
                                               CUgraph* graph, const CUgraphNode** nodes, const CUgraphEdgeData** edges,
                                               std::size_t* count) {
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (graph != nullptr) *graph = nullptr;
  if (nodes != nullptr) *nodes = nullptr;
  if (edges != nullptr) *edges = nullptr;
  if (count != nullptr) *count = 0;
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  // No capture anywhere: no stream needs to be looked up, only to be known.
  if (open_captures.load(std::memory_order_acquire) == 0) {
    const stream_slot* known = streams.find(handle);
    if (known != nullptr && known->id.load(std::memory_order_acquire) != 0) return CUDA_SUCCESS;
  }
  stream_ref s;
  if (const CUresult result = resolve(handle, s); result != CUDA_SUCCESS) return result;
  const auto c = capture_of(*s.core);
  if (c == nullptr) {
    // The legacy stream has no answer while a stream that it synchronises with captures.
    if (s.legacy && open_captures.load() != 0 && !captures_on(s.device->index, true).empty())
      return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    return CUDA_SUCCESS;
  }
  *status = c->valid() ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
  if (id != nullptr) *id = c->id();
  return CUDA_SUCCESS;
}

CUresult machine_state::cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph handle, unsigned long long flags) {
  graph_slot* from = graphs.find(handle);
  if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<const graph_nodes> nodes;
  if (from != nullptr) {
    const std::lock_guard lock(from->mutex);
    nodes = from->nodes;
  }
  if (nodes == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  graph_slot* made = graphs.take();
  if (made == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::lock_guard lock(made->mutex);
  made->nodes = std::move(nodes);
  made->last_launch = {};
  *out = exec_of(made);
  return CUDA_SUCCESS;
}

CUresult machine_state::cuGraphLaunch(CUgraphExec handle, CUstream on) {
  graph_slot* g = graphs.find(handle);
  stream_ref s;
  if (const CUresult result = resolve(on, s); result != CUDA_SUCCESS) return result;
  if (g == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const std::lock_guard lock(g->mutex);
  if (g->nodes == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const bool captured = capture_of(*s.core) != nullptr;
  // One executable graph runs once at a time.
  if (!captured && g->last_launch.core != s.core) {
    if (g->last_launch.core != nullptr) s.core->add(g->last_launch);
  }
  for (const operation& node : *g->nodes) {
    if (const CUresult result = submit(s, node); result != CUDA_SUCCESS) return result;
  }
  if (!captured) g->last_launch = s.core->tail();
  return CUDA_SUCCESS;
}

CUresult machine_state::cuGraphDestroy(CUgraph handle) {
  graph_slot* g = graphs.find(handle);
  if (g == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  std::shared_ptr<const graph_nodes> last;
  point launch;
  {
    const std::lock_guard lock(g->mutex);
    if (g->nodes == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    last.swap(g->nodes);
    std::swap(launch, g->last_launch);
  }
  graphs.give_back(g);
  return CUDA_SUCCESS;
}

CUresult machine_state::cuGraphExecDestroy(CUgraphExec handle) {
  return cuGraphDestroy(static_cast<CUgraph>(static_cast<void*>(handle)));
}

}  // namespace weir::sim
