#pragma once
// Announces the capture of a CUDA graph, so that its memory comes from a pool of its own and nothing that Weir does
// can invalidate it (C7).

#include "weir/export.hpp"
#include "weir/pool.hpp"
#include "weir/types.hpp"

namespace weir {

class service;

/// Make one before the driver's begin-capture call, call `end` after its end-capture call, and keep it as long as the
/// graph may be launched: its memory is not given to anybody else before the object and all its blocks are gone.
///
///   weir::capture c(service, device);
///   cudaStreamBeginCapture(s, mode); ... service.allocate(n, device, s) ... cudaStreamEndCapture(s, &graph);
///   c.end();
///
/// Between construction and `end`, allocations on any stream of the device that takes part in a capture come from this
/// object's pool; other streams are served as always. No event is recorded, waited for or polled on such a stream.
class WEIR_API capture {
 public:
  /// Throws `error`. `pool`: share the pool of an earlier capture (graphs that never run at the same time).
  capture(service& s, int device, const weir::pool& pool = {});
  capture(const capture&) = delete;
  capture& operator=(const capture&) = delete;
  ~capture();  ///< ends, if `end` was not called

  void end() noexcept;
  [[nodiscard]] const weir::pool& memory() const noexcept { return pool_; }

 private:
  service& service_;
  int device_;
  weir::pool pool_;
  bool open_ = true;
};

}  // namespace weir
