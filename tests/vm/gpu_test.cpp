// The same on the installed driver: what the simulated one may be wrong about. Skipped where there is no GPU.

#include <algorithm>
#include <chrono>
#include <optional>

#include "driver/real.hpp"
#include "heap/state.hpp"
#include "rig.hpp"

namespace weir::vm {
namespace {

using namespace testing;
using namespace std::chrono_literals;

class gpu : public ::testing::Test {
 protected:
  void SetUp() override {
    const driver::real_driver real = driver::open_real_driver();
    if (real.functions == nullptr) GTEST_SKIP() << real.error;
    if (real.functions->cuInit(0) != CUDA_SUCCESS) GTEST_SKIP() << "no GPU";
    table_ = real.functions;
    device_.emplace(*table_, 0, settings{});
    ASSERT_EQ(device_->ensure_context(), CUDA_SUCCESS);
    ASSERT_EQ(table_->cuCtxPushCurrent(device_->context()), CUDA_SUCCESS);
    for (CUstream& s : streams_) ASSERT_EQ(table_->cuStreamCreate(&s, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    for (CUstream s : streams_) lanes_.push_back(std::make_unique<lane_rig>(*device_, s));
  }
  void TearDown() override {
    if (table_ == nullptr) return;
    for (CUstream s : streams_) table_->cuStreamDestroy(s);
    CUcontext popped = nullptr;
    table_->cuCtxPopCurrent(&popped);
  }

  /// Holds a stream for some milliseconds of copying.
  void keep_busy(CUstream s, std::uint64_t block, std::uint64_t bytes) {
    for (int i = 0; i < 200; ++i)
      ASSERT_EQ(table_->cuMemsetD8Async(block, static_cast<unsigned char>(i), bytes, s), CUDA_SUCCESS);
  }
  std::uint64_t trim_all() {
    std::uint64_t released = 0;
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    do {
      collect(*device_, nullptr);
      for (auto& l : lanes_) released += retire_free_chunks(l->lane, 0);
      released += finish_retiring(*device_);
    } while (device_->reserved() != 0 && std::chrono::steady_clock::now() < deadline);
    return released;
  }

  std::vector<std::unique_ptr<lane_rig>> lanes_;
  const driver::table* table_ = nullptr;
  std::optional<vm::device> device_;
  CUstream streams_[2] = {};
};

TEST_F(gpu, grows_is_written_and_read_and_goes_back) {
  lane_rig& l = *lanes_[0];
  const std::uint64_t a = l.allocate(3 * MiB);
  const std::uint64_t b = l.allocate(300 * MiB);  // beside the tail, over several handles
  ASSERT_TRUE(a != 0 && b != 0);
  EXPECT_EQ(device_->reserved(), 304 * MiB);
  EXPECT_EQ(l.lane.heap->address_of(0) % heap::slot_bytes, 0u);
  ASSERT_EQ(table_->cuMemsetD8Async(b, 0x5a, 300 * MiB, l.lane.stream), CUDA_SUCCESS);
  std::vector<unsigned char> back(300 * MiB);
  ASSERT_EQ(table_->cuMemcpyDtoHAsync(back.data(), b, back.size(), l.lane.stream), CUDA_SUCCESS);
  ASSERT_EQ(table_->cuStreamSynchronize(l.lane.stream), CUDA_SUCCESS);
  EXPECT_EQ(std::count(back.begin(), back.end(), 0x5a), static_cast<std::ptrdiff_t>(back.size()));
  l.free(a);
  l.free(b);
  EXPECT_EQ(trim_all(), 304 * MiB);
  EXPECT_EQ(device_->events.alive(), 0u);
  EXPECT_EQ(l.lane.memory.address_bytes.load(), 0u);
}

TEST_F(gpu, queued_work_keeps_its_memory) {
  lane_rig& l = *lanes_[0];
  const std::uint64_t a = l.allocate(256 * MiB);
  keep_busy(l.lane.stream, a, 256 * MiB);
  l.free(a);
  const std::uint64_t at_once = retire_free_chunks(l.lane, 0);
  EXPECT_EQ(at_once, 0u);
  EXPECT_EQ(retiring_bytes(*device_), 256 * MiB);
  EXPECT_EQ(trim_all(), 256 * MiB);
  EXPECT_EQ(table_->cuStreamSynchronize(l.lane.stream), CUDA_SUCCESS);
}

TEST_F(gpu, pending_blocks_and_uses_go_home_when_the_gpu_has_passed) {
  lane_rig& own = *lanes_[0];
  lane_rig& other = *lanes_[1];
  const std::uint64_t a = own.allocate(64 * MiB);
  const std::uint64_t b = own.allocate(64 * MiB);
  keep_busy(other.lane.stream, a, 64 * MiB);
  ASSERT_EQ(record_use(*device_, b, other.lane.stream), CUDA_SUCCESS);
  heap::find_slot(a)->states[heap::granule_in_slot(a)].store(heap::code_pending);
  heap::find_slot(b)->states[heap::granule_in_slot(b)].store(heap::code_pending);
  ASSERT_TRUE(push_pending(other.lane, a));
  ASSERT_TRUE(push_used(own.lane, b));
  EXPECT_EQ(collect(*device_, nullptr), 0u);
  EXPECT_EQ(wait_pending(*device_, nullptr, 128 * MiB, std::chrono::steady_clock::now() + 10s), 128 * MiB);
  trim_all();
  EXPECT_EQ(device_->events.alive(), 0u);
}

TEST_F(gpu, a_destroyed_streams_work_is_covered_by_the_context_fence) {
  lane_rig& l = *lanes_[1];
  const std::uint64_t a = l.allocate(256 * MiB);
  keep_busy(l.lane.stream, a, 256 * MiB);
  l.free(a);
  l.lane.handles = 0;
  ASSERT_EQ(table_->cuStreamDestroy(streams_[1]), CUDA_SUCCESS);
  ASSERT_EQ(table_->cuStreamCreate(&streams_[1], CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  const std::uint64_t at_once = retire_free_chunks(l.lane, 0);
  if (table_->cuCtxRecordEvent != nullptr) {
    EXPECT_EQ(at_once, 0u);
    EXPECT_EQ(retiring_bytes(*device_), 256 * MiB);
  }
  ASSERT_EQ(table_->cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(trim_all(), 256 * MiB);
}

TEST_F(gpu, a_request_beyond_the_device_is_refused_and_leaves_nothing) {
  lane_rig& l = *lanes_[0];
  const auto all = static_cast<std::uint32_t>(device_->capacity() >> heap::page_shift);
  const growth_result g = grow(l.lane, all, 1);  // the context itself takes some
  EXPECT_EQ(g.what, growth::out_of_memory);
  EXPECT_EQ(device_->reserved(), 0u);
  EXPECT_EQ(retiring_bytes(*device_), 0u);
  EXPECT_EQ(l.lane.memory.address_bytes.load(), 0u);
}

}  // namespace
}  // namespace weir::vm
