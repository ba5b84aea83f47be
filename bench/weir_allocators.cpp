// Weir itself: `weir` through a lane, `weir_raw` through the calls that only name a stream.

#include <cstddef>
#include <deque>
#include <memory>

#include "weir/lane.hpp"
#include "weir/service.hpp"

#include "environment.hpp"

namespace weir::bench {
namespace {

void* lane_allocate(std::size_t bytes, void* context) { return static_cast<weir::lane*>(context)->allocate(bytes); }
void lane_deallocate(void* block, std::size_t, void* context) { static_cast<weir::lane*>(context)->deallocate(block); }

struct raw_context {
  weir::service* service;
  weir::stream_t stream;
};

// Both calls name the stream, as a framework's socket does; so both ask the driver who the stream is.
void* raw_allocate(std::size_t bytes, void* context) {
  const auto* raw = static_cast<raw_context*>(context);
  return raw->service->allocate(bytes, 0, raw->stream);
}
void raw_deallocate(void* block, std::size_t, void* context) {
  const auto* raw = static_cast<raw_context*>(context);
  raw->service->deallocate(block, raw->stream);
}

// Threads of a CUDA program have a current device; Weir asks the driver on them. `thread_init` has no argument.
const environment* entered = nullptr;
void enter_device() { entered->enter_device(); }

// Contexts by the stream's index; a deque, since the workloads keep their addresses.
template <class Context, class Make>
auto contexts(Make make) {
  return [known = std::make_shared<std::deque<Context>>(), make](std::size_t index) -> void* {
    while (known->size() <= index) known->push_back(make(known->size()));
    return &(*known)[index];
  };
}

}  // namespace

void add_weir_allocators(environment& env) {
  entered = &env;
  allocator lane;
  lane.name = "weir";
  lane.allocate = lane_allocate;
  lane.deallocate = lane_deallocate;
  lane.thread_init = enter_device;
  lane.context_of = contexts<weir::lane>([&env](std::size_t i) { return env.service().lane(0, env.stream(i)); });
  env.allocators.push_back(std::move(lane));

  allocator raw;
  raw.name = "weir_raw";
  raw.allocate = raw_allocate;
  raw.deallocate = raw_deallocate;
  raw.thread_init = enter_device;
  raw.context_of = contexts<raw_context>([&env](std::size_t i) { return raw_context{&env.service(), env.stream(i)}; });
  env.allocators.push_back(std::move(raw));
}

}  // namespace weir::bench
