#include "cli/stamp_queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "cli/errors.hpp"

namespace weir::cli {
namespace {

constexpr std::uint64_t stamp = std::uint64_t{5} << 32;

rig_options one_simulated_device() {
  rig_options o;
  o.config.driver = backend::simulated;
  o.config.maintenance = false;
  o.devices = 1;
  return o;
}

class stamp_queues : public testing::Test {
 protected:
  // Blocks are of a lane of its own, freed at the end whatever the test did.
  void* block(std::uint64_t bytes) {
    blocks_.push_back(lane_.allocate(bytes));
    return blocks_.back();
  }
  void TearDown() override {
    rig_.synchronize();
    for (void* p : blocks_) lane_.deallocate(p);
  }
  // In stream order, behind what was flushed so far.
  void overwrite(void* p, std::uint64_t word) {
    rig_.machine()->launch(stream_, [=] { *sim::view_as(0, static_cast<std::uint64_t*>(p) + word) = 77; });
  }
  static std::string fault_of(stamp_queue& queue) {
    try {
      queue.finish();
    } catch (const fault_error& e) {
      return e.what();
    }
    return {};
  }

  rig rig_{one_simulated_device()};
  stream_t stream_ = rig_.make_stream(0);
  weir::lane lane_ = rig_.service().lane(0, stream_);
  std::unique_ptr<stamper> kernels_ = make_stamper(rig_);
  std::vector<void*> blocks_;
};

TEST_F(stamp_queues, intact_blocks_are_found_intact) {
  stamp_queue queue(rig_, *kernels_, 0, stream_);
  // More orders than a launch takes and more launches than may be in flight.
  for (std::uint64_t i = 0; i < 600; ++i) queue.write(block(256 << (i % 8)), 256 << (i % 8), stamp * i);
  queue.flush();
  for (std::uint64_t i = 0; i < 600; ++i) queue.verify(blocks_[i], 256 << (i % 8), stamp * i);
  EXPECT_EQ(fault_of(queue), "");
}

TEST_F(stamp_queues, writing_and_verifying_may_share_a_launch) {
  stamp_queue queue(rig_, *kernels_, 0, stream_);
  void* p = block(4096);
  queue.write(p, 4096, stamp);
  queue.verify(p, 4096, stamp);
  EXPECT_EQ(fault_of(queue), "");
}

TEST_F(stamp_queues, an_overwritten_word_is_named) {
  for (const std::uint64_t word : {0U, 511U}) {
    stamp_queue queue(rig_, *kernels_, 0, stream_);
    void* p = block(4096);
    queue.write(p, 4096, stamp);
    queue.flush();
    overwrite(p, word);
    queue.verify(p, 4096, stamp);
    const std::string fault = fault_of(queue);
    EXPECT_THAT(fault, testing::HasSubstr("was overwritten: word " + std::to_string(word) + " is 0x4d"));
    EXPECT_THAT(fault, testing::HasSubstr("of 4096 bytes"));
    EXPECT_EQ(fault_of(queue), "") << "a fault is told once";
  }
}

TEST_F(stamp_queues, a_block_never_written_is_a_fault) {
  stamp_queue queue(rig_, *kernels_, 0, stream_);
  queue.verify(block(4096), 4096, stamp);
  EXPECT_NE(fault_of(queue), "");
}

TEST_F(stamp_queues, another_stream_waits_for_the_writing) {
  const stream_t other = rig_.make_stream(0);
  stamp_queue writer(rig_, *kernels_, 0, stream_);
  stamp_queue reader(rig_, *kernels_, 0, other);
  EXPECT_EQ(writer.last_launch(), nullptr);
  void* p = block(1 << 20);
  sim::gate gate = rig_.machine()->hold(stream_);
  writer.write(p, 1 << 20, stamp);
  writer.flush();
  reader.wait_for(writer.last_launch());
  reader.verify(p, 1 << 20, stamp);
  reader.flush();
  EXPECT_FALSE(rig_.machine()->idle(other));
  gate.open();
  EXPECT_EQ(fault_of(reader), "");
  EXPECT_EQ(fault_of(writer), "");
}

TEST_F(stamp_queues, blocks_too_small_for_a_word_are_left_alone) {
  stamp_queue queue(rig_, *kernels_, 0, stream_);
  queue.verify(block(7), 7, stamp);
  EXPECT_EQ(fault_of(queue), "");
  EXPECT_EQ(queue.last_launch(), nullptr);
}

}  // namespace
}  // namespace weir::cli
