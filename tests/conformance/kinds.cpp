#include "conformance/kinds.hpp"

#include "driver/table.hpp"

namespace weir::test {

std::vector<kind> kinds() {
  std::vector<kind> all = {{"default", way::lane},
                           {"raw_stream", way::raw_stream},
                           {"pool", way::pool},
                           {"capture_pool", way::capture_pool},
                           {"aligned", way::aligned},
                           {"legacy_stream", way::legacy},
                           {"per_thread_stream", way::per_thread}};
  const auto add = [&](const std::string& name, auto&& change) {
    kind k{name, way::lane};
    change(k.options);
    all.push_back(k);
    k.name += "_raw_stream";
    k.asked_by = way::raw_stream;
    all.push_back(k);
  };
  add("hardened", [](config& c) { c.hardened = true; });
  add("tiny_thread_cache", [](config& c) { c.thread_cache = 4096; });
  add("no_thread_cache", [](config& c) { c.thread_cache = 0; });
  add("no_caches", [](config& c) { c.thread_cache = c.lane_cache = 0; });
  add("small_chunks", [](config& c) { c.chunk_size = 2 * mib; });
  add("limited", [](config& c) { c.limit = 512 * mib; });
  add("no_maintenance", [](config& c) { c.maintenance = false; });
  return all;
}

conformance::conformance() {
  weir::service& s = *rig_.service;
  const way asked_by = GetParam().asked_by;
  if (asked_by == way::legacy) {
    lane_ = s.lane(0, legacy_stream);
    return;
  }
  if (asked_by == way::per_thread) {
    stream_ = per_thread_stream;
    lane_ = s.lane(0, per_thread_stream);
    return;
  }
  stream_ = rig_.stream();
  switch (asked_by) {
    case way::pool:
      pool_ = s.make_pool("conformance");
      lane_ = s.lane(0, stream_, pool_);
      break;
    case way::capture_pool:
      capture_ = std::make_unique<weir::capture>(s, 0);
      EXPECT_EQ(rig_.machine->table().cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), CUDA_SUCCESS);
      break;
    case way::raw_stream:
      break;
    default:
      lane_ = s.lane(0, stream_);
  }
}

conformance::~conformance() {
  if (capture_ != nullptr) {
    CUgraph graph = nullptr;
    EXPECT_EQ(rig_.machine->table().cuStreamEndCapture(stream_, &graph), CUDA_SUCCESS) << "the capture was invalidated";
    if (graph != nullptr) rig_.machine->table().cuGraphDestroy(graph);
    capture_->end();
    capture_.reset();
  }
  lane_ = {};
  pool_ = {};
  rig_.finish();
}

void* conformance::allocate(std::size_t bytes, std::size_t alignment) {
  if (GetParam().asked_by == way::aligned && alignment == default_alignment) return lane_.allocate(bytes, 64 * kib);
  return lane_ ? lane_.allocate(bytes, alignment) : rig_.service->allocate(bytes, 0, stream_, alignment);
}

void* conformance::try_allocate(std::size_t bytes, std::size_t alignment) noexcept {
  return lane_ ? lane_.try_allocate(bytes, alignment) : rig_.service->try_allocate(bytes, 0, stream_, alignment);
}

void conformance::deallocate(void* block) noexcept {
  if (lane_) {
    lane_.deallocate(block);
  } else if (capture_ != nullptr) {
    rig_.service->deallocate(block);
  } else {
    rig_.service->deallocate(block, stream_);
  }
}

block_info conformance::info(const void* address) const {
  block_info found;
  EXPECT_TRUE(rig_.service->query(address, found)) << address << " is in no block";
  return found;
}

}  // namespace weir::test
