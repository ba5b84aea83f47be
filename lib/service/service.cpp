#include "weir/service.hpp"

#include <string>

#include "cache/fast_path.hpp"
#include "cache/thread_cache.hpp"
#include "coordinator/allocate.hpp"
#include "coordinator/deallocate.hpp"
#include "coordinator/lane_directory.hpp"
#include "coordinator/lanes.hpp"
#include "driver/error.hpp"
#include "service/access.hpp"
#include "service/implementation.hpp"
#include "service/life_cycle.hpp"
#include "vm/pending.hpp"
#include "vm/streams.hpp"
#include "vm/trim.hpp"

namespace weir {

namespace {

void must_be_usable(const coordinator::core& c, const char* call) {
  if (!cache::usable_here()) {
    throw error(errc::not_after_fork,
                std::string(call) + ": not usable after fork: the devices belong to the parent process");
  }
  if (c.ending.load(std::memory_order_acquire)) throw error(errc::shut_down, std::string(call) + ": the process exits");
}

[[noreturn]] void driver_failed(const coordinator::core& c, const char* call, const char* driver_call, CUresult r) {
  throw error(errc::driver_error, std::string(call) + ": " + driver::describe(*c.functions, driver_call, r));
}

}  // namespace

coordinator::device_state& service::implementation::device(int index, const char* call) {
  must_be_usable(core, call);
  if (index < 0 || index >= static_cast<int>(core.devices.size())) {
    throw error(errc::invalid_argument, std::string(call) + ": no device " + std::to_string(index) + " among " +
                                            std::to_string(core.devices.size()));
  }
  return *core.devices[static_cast<std::size_t>(index)];
}

service::service(const config& c) : service(c, nullptr) {}

service::service(const config& c, std::shared_ptr<sim::machine> machine)
    : implementation_(std::make_unique<implementation>(c)) {
  try {
    service_detail::begin(implementation_->core, std::move(machine));
  } catch (...) {
    service_detail::end(implementation_->core);
    throw;
  }
}

service::~service() {
  if (cache::usable_here()) {
    service_detail::end(implementation_->core);
  } else {
    // A forked child owns neither the devices nor the threads.
    static_cast<void>(implementation_.release());
  }
}

service& service::global() {
  static auto* s = new service;  // never destroyed: statics may free after main
  return *s;
}

const config& service::configuration() const noexcept { return implementation_->core.options; }
int service::device_count() const noexcept { return static_cast<int>(implementation_->core.devices.size()); }

device_info service::info(int device) const {
  device_info i = implementation_->device(device, "info").memory.describe();
  i.simulated = implementation_->core.machine != nullptr;
  return i;
}

// --- lanes ---------------------------------------------------------------------------------------------------------

weir::lane service::lane(int device, stream_t stream, const weir::pool& p) {
  coordinator::core& c = implementation_->core;
  coordinator::device_state& d = implementation_->device(device, "lane");
  if (const CUresult r = d.memory.ensure_context(); r != CUDA_SUCCESS) {
    driver_failed(c, "lane", "cuDevicePrimaryCtxRetain", r);
  }
  pool_state* chosen = service_detail::access::chosen(c, p);
  if (chosen->owner.load(std::memory_order_relaxed) != &c) {
    throw error(errc::invalid_argument, "lane: pool \"" + chosen->text + "\" is of another service");
  }
  CUresult r = CUDA_SUCCESS;
  lane_state* l = coordinator::lane_of_stream(c, d, stream, chosen, r);
  if (r != CUDA_SUCCESS) driver_failed(c, "lane", "cuStreamGetId", r);
  if (l == nullptr) throw error(errc::out_of_memory, "lane: no host memory, or no lane number, is left");
  return service_detail::access::make(l);
}

weir::pool service::make_pool(std::string_view name) {
  coordinator::core& c = implementation_->core;
  must_be_usable(c, "make_pool");
  auto* p = new pool_state(c, name);
  weir::pool handle = service_detail::access::make(p);
  const std::lock_guard lock(c.pools_mutex);
  c.pools.push_back(p);
  return handle;
}

// --- raw-stream calls ----------------------------------------------------------------------------------------------

namespace {

// The lane of a raw-stream call; null and a reason.
lane_state* raw_lane(coordinator::core& c, int device, stream_t stream, coordinator::outcome& out) noexcept {
  if (device < 0 || device >= static_cast<int>(c.devices.size())) {
    out.why = errc::invalid_argument;
    return nullptr;
  }
  if (!cache::usable_here()) {
    out.why = errc::not_after_fork;
    return nullptr;
  }
  if (c.ending.load(std::memory_order_acquire)) {
    out.why = errc::shut_down;
    return nullptr;
  }
  coordinator::device_state& d = *c.devices[static_cast<std::size_t>(device)];
  CUresult r = CUDA_SUCCESS;
  lane_state* l = coordinator::lane_of_stream(c, d, stream, service_detail::access::chosen(c, {}), r);
  out.why = r == CUDA_SUCCESS ? errc::out_of_memory : errc::driver_error;
  out.driver = r;
  return l;
}

}  // namespace

void* service::allocate(std::size_t bytes, int device, stream_t stream, std::size_t alignment) {
  coordinator::core& c = implementation_->core;
  coordinator::outcome out;
  lane_state* l = raw_lane(c, device, stream, out);
  if (l == nullptr) {
    implementation_->device(device, "allocate");  // throws for what it names
    if (out.why == errc::driver_error) driver_failed(c, "allocate", "the driver", out.driver);
    throw error(errc::out_of_memory, "allocate: no host memory, or no lane number, is left");
  }
  const auto miss = [&] { return coordinator::allocate(l, bytes, alignment); };
  return alignment == default_alignment ? cache::allocate_hit(l->number(), bytes, miss) : miss();
}

void* service::try_allocate(std::size_t bytes, int device, stream_t stream, std::size_t alignment) noexcept {
  coordinator::outcome out;
  lane_state* l = raw_lane(implementation_->core, device, stream, out);
  if (l == nullptr) return nullptr;
  const auto miss = [&]() noexcept { return coordinator::allocate_or_null(l, bytes, alignment); };
  return alignment == default_alignment ? cache::allocate_hit(l->number(), bytes, miss) : miss();
}

void service::deallocate(void* block) noexcept {
  const heap::slot* s = heap::find_slot(reinterpret_cast<std::uint64_t>(block));
  const bool ours =
      s != nullptr && lane_state_of(*s->lane).core.load(std::memory_order_acquire) == &implementation_->core;
  if (ours && cache::deallocate_hit<false>(block, cache::own_lane)) return;
  coordinator::deallocate(block, nullptr, &implementation_->core);
}

void service::deallocate(void* block, stream_t stream) noexcept {
  coordinator::core& c = implementation_->core;
  if (block == nullptr) return;
  const heap::slot* s = heap::find_slot(reinterpret_cast<std::uint64_t>(block));
  lane_state* own = s == nullptr ? nullptr : &lane_state_of(*s->lane);
  if (own == nullptr || own->core.load(std::memory_order_acquire) != &c || !cache::usable_here()) {
    return coordinator::deallocate(block, nullptr, &c);
  }
  // The lane's own handle is the lane's own stream, with no need to ask: a lane with live handles outlives no stream,
  // and one without is never allocated from again once another stream has its handle, so only fences that cover both
  // let its memory go.
  const bool same_handle = stream == own->base.stream && !own->base.per_thread_default;
  CUresult r = CUDA_SUCCESS;
  lane_state* freed_in = same_handle ? own : coordinator::lane_of_stream(c, *own->device, stream, own->pool, r);
  if (freed_in == own) {
    if (cache::deallocate_hit<true>(block, own->number())) [[likely]]
      return;
    return coordinator::deallocate(block, own, &c);
  }
  if (freed_in == nullptr) {
    // Whose order it is cannot be known: the block stays allocated, which is safe.
    c.told.say(log_level::error, own->base.device->ordinal(), "free of %p on a stream that cannot be identified: %s",
               block, driver::describe(*c.functions, "cuStreamGetId", r).c_str());
    return;
  }
  coordinator::deallocate(block, freed_in, &c);
  // This call names the stream: the only one that may fence a lane without handles.
  if (freed_in->base.handles.load(std::memory_order_acquire) == 0) {
    const coordinator::walk here(c);
    vm::collect(*own->base.device, freed_in->named_here());
  }
}

// --- order ---------------------------------------------------------------------------------------------------------

void service::record_use(const void* address, stream_t stream) {
  coordinator::core& c = implementation_->core;
  must_be_usable(c, "record_use");
  heap::block_place at;
  const bool found = heap::lane_heap::find(reinterpret_cast<std::uint64_t>(address), at);
  lane_state* l = found ? &lane_state_of(*at.lane) : nullptr;
  if (l == nullptr || (at.state & heap::live_bit) == 0 || l->core.load(std::memory_order_acquire) != &c) {
    c.told.report(misuse::kind::bad_record_use, address, "record_use of %p, which lies in no live block", address);
    return;
  }
  if (const CUresult r = vm::record_use(*l->base.device, at.base, stream); r != CUDA_SUCCESS) {
    driver_failed(c, "record_use", "cuEventRecord", r);
  }
}

void service::retire(int device, stream_t stream) {
  coordinator::core& c = implementation_->core;
  coordinator::device_state& d = implementation_->device(device, "retire");
  if (d.memory.context() == nullptr) return;  // no lane can exist
  CUresult r = CUDA_SUCCESS;
  const std::uint64_t id = vm::stream_id(d.memory, stream, r);
  if (r != CUDA_SUCCESS) driver_failed(c, "retire", "cuStreamGetId", r);
  const coordinator::walk here(c);
  coordinator::for_each_lane(c, [&](lane_state& l) {
    // A lane that a capture was the first to name is known by the handle alone.
    const bool same =
        l.base.stream_id == id || (l.base.stream_id >= coordinator::unnamed_streams && l.base.stream == stream);
    if (l.device != &d || !same || l.base.retired.load(std::memory_order_acquire)) return;
    vm::collect(d.memory, l.named_here());
    coordinator::gather(l);
    vm::retire_free_chunks(l.base, 0, l.named_here());
    l.base.retired.store(true, std::memory_order_release);
    coordinator::unlist_lane(c, l);
    coordinator::end_if_empty(c, l);
  });
}

void service::quiesced(int device) {
  coordinator::device_state& d = implementation_->device(device, "quiesced");
  if (d.memory.context() == nullptr) return;
  const coordinator::walk here(implementation_->core);
  vm::quiesced(d.memory);
  vm::collect(d.memory, nullptr);
  vm::finish_retiring(d.memory);
}

void service::collect() noexcept {
  if (!cache::usable_here()) return;
  coordinator::drain_limbo(implementation_->core);
  const coordinator::walk here(implementation_->core);
  for (const auto& d : implementation_->core.devices) {
    if (d->memory.context() == nullptr || d->memory.lost.load(std::memory_order_acquire)) continue;
    vm::collect(d->memory, nullptr);
    vm::finish_retiring(d->memory);
  }
}

// --- memory --------------------------------------------------------------------------------------------------------

std::uint64_t service::trim(int device, std::uint64_t keep) {
  coordinator::core& c = implementation_->core;
  coordinator::device_state& d = implementation_->device(device, "trim");
  if (d.memory.context() == nullptr || c.trim_holds.load(std::memory_order_acquire) != 0) return 0;
  coordinator::drain_limbo(c);
  const coordinator::walk here(c);
  // With the context fence, as for the chunks: what lanes without handles have pending would stay for ever. No wait.
  vm::wait_pending(d.memory, nullptr, ~std::uint64_t{0}, std::chrono::steady_clock::now());
  std::uint64_t released = vm::finish_retiring(d.memory);
  coordinator::for_each_lane(c, [&](lane_state& l) {
    if (l.device != &d || d.memory.reserved() <= keep) return;
    coordinator::gather(l);
    released += vm::retire_free_chunks(l.base, keep);
    coordinator::end_if_empty(c, l);
  });
  return released + vm::finish_retiring(d.memory);
}

std::uint64_t service::trim() {
  std::uint64_t released = 0;
  for (int i = 0; i < device_count(); ++i) released += trim(i);
  return released;
}

void service::limit(int device, std::uint64_t bytes) {
  implementation_->device(device, "limit").memory.limit.store(bytes, std::memory_order_relaxed);
}

std::uint64_t service::limit(int device) const {
  return implementation_->device(device, "limit").memory.limit.load(std::memory_order_relaxed);
}

service::trim_hold::trim_hold(service* s) noexcept : service_(s) {
  s->implementation_->core.trim_holds.fetch_add(1, std::memory_order_acq_rel);
}
service::trim_hold::trim_hold(trim_hold&& other) noexcept : service_(other.service_) { other.service_ = nullptr; }
service::trim_hold::~trim_hold() {
  if (service_ != nullptr) service_->implementation_->core.trim_holds.fetch_sub(1, std::memory_order_acq_rel);
}
service::trim_hold service::hold_trims() noexcept { return trim_hold(this); }

// --- hooks ---------------------------------------------------------------------------------------------------------

void service::on_out_of_memory(out_of_memory_hook hook) {
  implementation_->core.told.out_of_memory.set(std::move(hook));
}
void service::on_misuse(misuse_hook hook) { implementation_->core.told.misuse.set(std::move(hook)); }
void service::on_event(event_hook hook, log_level level) {
  implementation_->core.told.event_level.store(level, std::memory_order_relaxed);
  implementation_->core.told.event.set(std::move(hook));
}

coordinator::core& service_detail::access::core(const service& s) noexcept { return s.implementation_->core; }

}  // namespace weir
