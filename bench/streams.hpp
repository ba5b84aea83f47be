#pragma once
// Device 0 and its streams: a GPU's where there is one, else those of a simulated machine.

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "weir/config.hpp"
#include "weir/types.hpp"

struct CUctx_st;

namespace weir {
class service;
namespace sim {
class machine;
}
namespace driver {
struct table;
}
}  // namespace weir

namespace weir::bench {

class stream_source {
 public:
  explicit stream_source(const weir::config& c);
  stream_source(const stream_source&) = delete;
  stream_source& operator=(const stream_source&) = delete;
  ~stream_source();

  [[nodiscard]] weir::stream_t at(std::size_t index);
  [[nodiscard]] bool gpu() const noexcept { return driver_ != nullptr; }
  // Makes device 0 current on the calling thread, as every thread of a CUDA program has done.
  void enter() const;
  // Why the simulated machine is used; empty on a GPU.
  [[nodiscard]] const std::string& why_simulated() const noexcept { return why_simulated_; }
  [[nodiscard]] std::unique_ptr<weir::service> make_service() const;

 private:
  bool start_gpu();

  weir::config config_;
  const weir::driver::table* driver_ = nullptr;
  CUctx_st* context_ = nullptr;
  std::shared_ptr<weir::sim::machine> machine_;
  std::vector<weir::stream_t> streams_;
  std::string why_simulated_;
};

}  // namespace weir::bench
