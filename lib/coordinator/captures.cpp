#include "coordinator/captures.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include "cache/thread_cache.hpp"
#include "coordinator/lane_directory.hpp"
#include "coordinator/lanes.hpp"
#include "vm/streams.hpp"

namespace weir::coordinator {

void announce_capture(core& c, device_state& d, const void* key, pool_state* pool) {
  {
    const std::lock_guard lock(d.captures_mutex);
    d.captures.push_back({key, ::syscall(SYS_gettid), pool});
  }
  // Sequentially consistent with the look in find_or_make_lane: a lane made now is flagged by one of the two.
  d.memory.announced_captures.fetch_add(1, std::memory_order_seq_cst);
  const walk here(c);
  for_each_lane(c, [&](lane_state& l) {
    if (l.device == &d) cache::set_captured(l.number(), true);
  });
}

void close_capture(core& c, device_state& d, const void* key) noexcept {
  {
    const std::lock_guard lock(d.captures_mutex);
    std::erase_if(d.captures, [key](const open_capture& o) { return o.key == key; });
  }
  if (d.memory.announced_captures.fetch_sub(1, std::memory_order_seq_cst) != 1) return;
  const walk here(c);
  for_each_lane(c, [&](lane_state& l) {
    if (l.device == &d) cache::set_captured(l.number(), false);
  });
}

lane_state* lane_under_capture(lane_state& l) noexcept {
  device_state& d = *l.device;
  if (l.base.per_thread_default && l.named_here() == nullptr) return &l;
  if (d.memory.ensure_context() != CUDA_SUCCESS || !vm::capturing(d.memory, l.base.stream)) return &l;
  pool_state* pool = nullptr;
  {
    // The thread's own innermost capture, else the newest of the device.
    const std::lock_guard lock(d.captures_mutex);
    const long me = ::syscall(SYS_gettid);
    const open_capture* best = nullptr;
    for (const open_capture& o : d.captures) {
      if (o.pool == l.pool) return &l;
      if (best == nullptr || best->thread != me || o.thread == me) best = &o;
    }
    if (best == nullptr) return &l;
    pool = best->pool;
  }
  return find_or_make_lane(d.owner, d, l.base.stream, l.base.stream_id, pool);
}

}  // namespace weir::coordinator
