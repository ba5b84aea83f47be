#include "environment.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>

#include "weir/service.hpp"

#include "streams.hpp"

namespace weir::bench {

environment::environment(options o) : options_(std::move(o)) {
  const weir::config c = weir::config::from_environment();
  streams_ = std::make_unique<stream_source>(c);
  service_ = streams_->make_service();
  if (!gpu()) note("simulated device: " + streams_->why_simulated());
  add_weir_allocators(*this);
  add_host_allocators(*this);
  if (gpu()) add_cuda_allocators(*this);
  add_plugins(*this);
  if (options_.reverse) std::reverse(allocators.begin(), allocators.end());
}

environment::~environment() = default;

weir::stream_t environment::stream(std::size_t index) { return streams_->at(index); }

void environment::enter_device() const { streams_->enter(); }

bool environment::gpu() const noexcept { return streams_->gpu(); }

std::unique_ptr<weir::service> environment::another_service() const { return streams_->make_service(); }

void* environment::open_library(const std::string& name) {
  for (const std::string& folder : options_.peer_folders) {
    const auto path = std::filesystem::path(folder) / name;
    if (!std::filesystem::exists(path)) continue;
    // A library that is there and cannot be opened is worth a word; one that is not there is not.
    if (void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    note(::dlerror());
  }
  void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) note(::dlerror());
  return handle;
}

void environment::note(const std::string& text) { notes.push_back(text); }

}  // namespace weir::bench
