#include "streams.hpp"

#include <cstdint>
#include <cstdlib>
#include <stdexcept>

#include "weir/service.hpp"
#include "weir/simulation.hpp"

#include "driver/real.hpp"
#include "driver/table.hpp"

namespace weir::bench {

stream_source::stream_source(const weir::config& c) : config_(c) {
  if (config_.driver != backend::simulated && start_gpu()) return;
  if (config_.driver == backend::cuda) throw std::runtime_error("WEIR_DRIVER=cuda, but " + why_simulated_);
  if (why_simulated_.empty()) why_simulated_ = "WEIR_DRIVER=sim";
  // W1 holds 4 GiB at a time. Nothing touches the memory, so its size costs nothing.
  if (std::getenv("WEIR_SIMULATED_MEMORY") == nullptr) config_.simulated_memory = std::uint64_t{32} << 30;
  sim::machine_config machine;
  machine.devices.resize(1);
  machine.devices[0].memory = config_.simulated_memory;
  machine_ = std::make_shared<sim::machine>(machine);
}

// Streams go with the process: the service that made lanes of them may still be at work.
stream_source::~stream_source() = default;

bool stream_source::start_gpu() {
  const driver::real_driver found = driver::open_real_driver();
  if (found.functions == nullptr) {
    why_simulated_ = found.error;
    return false;
  }
  const driver::table& call = *found.functions;
  int devices = 0;
  CUdevice device = 0;
  CUcontext context = nullptr;
  if (call.cuInit(0) != CUDA_SUCCESS || call.cuDeviceGetCount(&devices) != CUDA_SUCCESS || devices == 0) {
    why_simulated_ = "the driver has no device";
    return false;
  }
  // The primary context: the one that cudart, PyTorch and Weir work in.
  if (call.cuDeviceGet(&device, 0) != CUDA_SUCCESS || call.cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS ||
      call.cuCtxSetCurrent(context) != CUDA_SUCCESS) {
    throw std::runtime_error("device 0 gives no context");
  }
  driver_ = &call;
  context_ = context;
  return true;
}

void stream_source::enter() const {
  if (machine_ != nullptr) {
    machine_->set_device(0);
  } else {
    driver_->cuCtxSetCurrent(context_);
  }
}

weir::stream_t stream_source::at(std::size_t index) {
  while (streams_.size() <= index) {
    weir::stream_t stream = nullptr;
    if (machine_ != nullptr) {
      stream = machine_->create_stream(0);
    } else if (driver_->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) {
      throw std::runtime_error("cuStreamCreate failed");
    }
    streams_.push_back(stream);
  }
  return streams_[index];
}

std::unique_ptr<weir::service> stream_source::make_service() const {
  if (machine_ != nullptr) return std::make_unique<weir::service>(config_, machine_);
  weir::config c = config_;
  c.driver = backend::cuda;
  return std::make_unique<weir::service>(c);
}

}  // namespace weir::bench
