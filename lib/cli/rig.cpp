#include "cli/rig.hpp"

#include <fmt/format.h>

#include "cli/errors.hpp"
#include "driver/error.hpp"
#include "driver/real.hpp"

namespace weir::cli {
namespace {

struct found_driver {
  const driver::table* functions = nullptr;
  int devices = 0;
  std::string error;  // why there is none
};

found_driver find_real_driver() {
  const driver::real_driver opened = driver::open_real_driver();
  if (opened.functions == nullptr) return {nullptr, 0, opened.error};
  CUresult result = opened.functions->cuInit(0);
  if (result != CUDA_SUCCESS) return {nullptr, 0, driver::describe(*opened.functions, "cuInit", result)};
  int count = 0;
  result = opened.functions->cuDeviceGetCount(&count);
  if (result != CUDA_SUCCESS) return {nullptr, 0, driver::describe(*opened.functions, "cuDeviceGetCount", result)};
  if (count == 0) return {nullptr, 0, "the CUDA driver shows no device"};
  return {opened.functions, count, {}};
}

std::shared_ptr<sim::machine> make_machine(const rig_options& options, int devices) {
  sim::machine_config c;
  c.devices.resize(static_cast<std::size_t>(devices));
  for (sim::device_config& d : c.devices) d.memory = options.config.simulated_memory;
  auto machine = std::make_shared<sim::machine>(c);
  if (options.simulated_costs || options.simulated_sleep > 0) machine->use_default_costs(options.simulated_sleep);
  return machine;
}

}  // namespace

void rig::open_driver(const rig_options& options) {
  const weir::backend wanted = options.config.driver;
  if (wanted != weir::backend::simulated) {
    const found_driver real = find_real_driver();
    if (real.functions != nullptr) {
      driver_ = real.functions;
      devices_ = real.devices;
      return;
    }
    if (wanted == weir::backend::cuda) throw usage_error(fmt::format("--backend cuda: {}", real.error));
    reason_ = real.error;
  }
  devices_ = options.devices > 0 ? options.devices : options.config.simulated_devices;
  machine_ = make_machine(options, devices_);
  driver_ = &machine_->table();
}

rig::rig(const rig_options& options) {
  open_driver(options);
  if (options.devices > devices_) {
    throw usage_error(
        fmt::format("--devices {}: there {} {}", options.devices, devices_ == 1 ? "is" : "are", devices_));
  }
  weir::config c = options.config;
  c.driver = simulated() ? weir::backend::simulated : weir::backend::cuda;
  c.simulated_devices = simulated() ? devices_ : c.simulated_devices;
  service_ = simulated() ? std::make_unique<weir::service>(c, machine_) : std::make_unique<weir::service>(c);
  if (options.devices > 0) devices_ = options.devices;
  contexts_.resize(static_cast<std::size_t>(devices_));
}

rig::~rig() {
  service_.reset();
  for (const stream_record& s : streams_) driver_->cuStreamDestroy(s.stream);
  driver_->cuCtxSetCurrent(nullptr);
  for (std::size_t d = 0; d < contexts_.size(); ++d) {
    if (contexts_[d] != nullptr) driver_->cuDevicePrimaryCtxRelease(static_cast<CUdevice>(d));
  }
}

int rig::driver_version() const {
  int version = 0;
  must(driver_->cuDriverGetVersion(&version), "cuDriverGetVersion", -1);
  return version;
}

void rig::must(CUresult result, const char* call, int device) const {
  if (result == CUDA_SUCCESS) return;
  const std::string where = device < 0 ? std::string() : fmt::format(" on device {}", device);
  throw fault_error(driver::describe(*driver_, call, result) + where);
}

void rig::use(int device) {
  CUcontext context = nullptr;
  {
    const std::lock_guard lock(mutex_);
    CUcontext& known = contexts_.at(static_cast<std::size_t>(device));
    if (known == nullptr) {
      must(driver_->cuInit(0), "cuInit", -1);
      CUdevice handle = 0;
      must(driver_->cuDeviceGet(&handle, device), "cuDeviceGet", device);
      must(driver_->cuDevicePrimaryCtxRetain(&known, handle), "cuDevicePrimaryCtxRetain", device);
    }
    context = known;
  }
  must(driver_->cuCtxSetCurrent(context), "cuCtxSetCurrent", device);
}

stream_t rig::make_stream(int device) {
  use(device);
  stream_t stream = nullptr;
  must(driver_->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate", device);
  const std::lock_guard lock(mutex_);
  streams_.push_back({device, stream});
  return stream;
}

void rig::synchronize() {
  for (const stream_record& s : streams_) {
    use(s.device);
    must(driver_->cuStreamSynchronize(s.stream), "cuStreamSynchronize", s.device);
  }
}

void rig::close_streams() {
  for (const stream_record& s : streams_) {
    use(s.device);
    if (service_ != nullptr) service_->retire(s.device, s.stream);
    must(driver_->cuStreamDestroy(s.stream), "cuStreamDestroy", s.device);
  }
  streams_.clear();
}

}  // namespace weir::cli
