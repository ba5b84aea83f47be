#include "vm/access.hpp"

#include "rig.hpp"

namespace weir::vm {
namespace {

using namespace testing;

bool reaches(const rig& r, int device, std::uint64_t block, std::uint64_t bytes) {
  return r.machine->accessible(device, reinterpret_cast<void*>(block), bytes);
}

TEST(access, a_device_that_joins_reaches_old_and_new_memory) {
  rig r;
  lane_rig& l = r.lane();
  const std::uint64_t old = l.allocate(30 * MiB);
  EXPECT_FALSE(reaches(r, 1, old, 1));
  ASSERT_EQ(share_with(*r.device, 2), CUDA_SUCCESS);
  EXPECT_TRUE(reaches(r, 1, old, 30 * MiB));
  const std::uint64_t later = l.allocate(30 * MiB);
  EXPECT_TRUE(reaches(r, 1, later, 30 * MiB));
  EXPECT_TRUE(reaches(r, 0, later, 30 * MiB));
  r.machine->reset_calls();
  EXPECT_EQ(share_with(*r.device, 2), CUDA_SUCCESS);  // already in the set
  EXPECT_EQ(calls(r, "cuMemSetAccess"), 0u);
}

TEST(access, chunks_that_are_retiring_come_back_with_it) {
  rig r;
  const CUstream s = r.machine->create_stream(0);
  lane_rig& l = r.lane(s);
  const std::uint64_t a = l.allocate(10 * MiB);
  sim::gate gate = r.machine->hold(s);
  l.free(a);
  ASSERT_EQ(retire_free_chunks(l.lane, 0), 0u);
  ASSERT_EQ(share_with(*r.device, 2), CUDA_SUCCESS);
  ASSERT_EQ(l.allocate(10 * MiB), a);
  EXPECT_TRUE(reaches(r, 1, a, 10 * MiB));
  gate.open();
}

TEST(access, a_pair_without_a_path_is_refused_and_nothing_changes) {
  sim::machine_config config;
  config.no_peer = {{0, 1}};
  rig r(config);
  lane_rig& l = r.lane();
  const std::uint64_t a = l.allocate(10 * MiB);
  EXPECT_EQ(share_with(*r.device, 2), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
  EXPECT_EQ(r.device->access_set, 1u);
  EXPECT_FALSE(reaches(r, 1, a, 1));
  EXPECT_NE(l.allocate(30 * MiB), 0u);
}

TEST(access, a_failure_leaves_the_set_as_it_was) {
  rig r;
  lane_rig& l = r.lane();
  l.allocate(10 * MiB);
  r.machine->fail("cuMemSetAccess", 1, sim::result::unknown);
  EXPECT_EQ(share_with(*r.device, 2), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(r.device->access_set, 1u);
  EXPECT_EQ(share_with(*r.device, 2), CUDA_SUCCESS);
}

TEST(access, while_others_grow_and_trim_no_chunk_is_missed) {
  for (int round = 0; round < 20; ++round) {
    settings s;
    s.growth_patience = std::chrono::milliseconds(0);
    rig r({}, s);
    lane_rig& l = r.lane();
    std::vector<std::uint64_t> blocks(40);
    std::thread grower([&] {
      for (std::size_t i = 0; i < blocks.size(); ++i) {
        blocks[i] = l.allocate(10 * MiB);
        if (i % 3 == 0) retire_free_chunks(l.lane, 0);
      }
    });
    EXPECT_EQ(share_with(*r.device, 2), CUDA_SUCCESS);
    grower.join();
    for (const std::uint64_t p : blocks) ASSERT_TRUE(reaches(r, 1, p, 10 * MiB));
  }
}

}  // namespace
}  // namespace weir::vm
