// Every kind: sizes, addresses, contents (C6, C8, C9).

#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <map>

#include "conformance/kinds.hpp"

namespace weir::test {
namespace {

std::vector<std::size_t> interesting_sizes() {
  std::vector<std::size_t> sizes = {1, 255, 256, 257, 511, 512, 513, 1000, 2047, 2048, 2049, 3 * mib / 2, 64 * mib};
  for (std::size_t power = 4 * kib; power <= 2 * mib; power *= 2) {
    for (const std::size_t s : {power - 1, power, power + 1, power + power / 8, power + power / 8 + 1}) {
      sizes.push_back(s);
    }
  }
  return sizes;
}

char* at(void* block, std::size_t offset) { return static_cast<char*>(block) + offset; }

TEST_P(conformance, every_size_gives_a_block_that_its_addresses_find) {
  for (const std::size_t bytes : interesting_sizes()) {
    SCOPED_TRACE(bytes);
    void* p = allocate(bytes);
    ASSERT_NE(p, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % default_alignment, 0u);
    const block_info whole = info(p);
    EXPECT_EQ(whole.base, p);
    EXPECT_GE(whole.bytes, bytes);
    EXPECT_EQ(whole.device, 0);
    EXPECT_EQ(whole.stream, stream_);
    EXPECT_TRUE(whole.live);
    for (const std::size_t offset : {std::size_t{1}, bytes / 2, bytes - 1, whole.bytes - 1}) {
      EXPECT_EQ(info(at(p, offset)).base, p) << offset;
      EXPECT_EQ(info(at(p, offset)).bytes, whole.bytes) << offset;
    }
    EXPECT_TRUE(rig_.machine->accessible(0, p, whole.bytes));
    deallocate(p);
    block_info none;
    EXPECT_FALSE(rig_.service->query(p, none)) << "a free block is found";
  }
}

TEST_P(conformance, blocks_waste_little) {
  if (GetParam().asked_by == way::aligned) GTEST_SKIP() << "alignment is what wastes here";
  for (const std::size_t bytes : interesting_sizes()) {
    void* p = allocate(bytes);
    const std::size_t got = info(p).bytes;
    if (bytes > 2 * kib && bytes <= max_small_bytes) {
      EXPECT_LE(static_cast<double>(got - bytes), 0.125 * static_cast<double>(got)) << bytes;
    } else {
      EXPECT_LT(got - bytes, bytes > max_small_bytes ? 64 * kib : 256u) << bytes;
    }
    deallocate(p);
  }
}

TEST_P(conformance, live_blocks_never_overlap) {
  std::map<char*, std::size_t> blocks;
  std::uint64_t live = 0;
  for (int round = 0; round < 20; ++round) {
    for (const std::size_t bytes : {1u, 256u, 300u, 5000u, 70000u, 1u << 20, (1u << 20) + 1}) {
      auto* p = static_cast<char*>(allocate(bytes));
      const std::size_t size = info(p).bytes;
      const auto after = blocks.upper_bound(p);
      ASSERT_TRUE(after == blocks.end() || p + size <= after->first);
      ASSERT_TRUE(after == blocks.begin() || std::prev(after)->first + std::prev(after)->second <= p);
      blocks.emplace(p, size);
      live += size;
    }
  }
  EXPECT_EQ(rig_.statistics().live, live);
  EXPECT_EQ(rig_.statistics().pending, 0u);
  for (const auto& [p, size] : blocks) deallocate(p);
  EXPECT_EQ(rig_.statistics().live, 0u);
}

TEST_P(conformance, contents_stay_until_the_block_is_freed) {
  if (!runs_kernels()) GTEST_SKIP() << "a capture's kernels do not run";
  struct stamped {
    void* block;
    std::size_t bytes;
    unsigned char stamp;
  };
  std::vector<stamped> blocks;
  std::atomic<int> wrong{0};
  unsigned char stamp = 0;
  for (int round = 0; round < 6; ++round) {
    for (const std::size_t bytes : {1u, 257u, 4096u, 100000u, (1u << 20) + 7}) {
      void* p = allocate(bytes);
      rig_.machine->fill(stream_, p, ++stamp, bytes);
      blocks.push_back({p, bytes, stamp});
    }
    // Every other block goes, so that later rounds reuse between live ones.
    std::vector<stamped> kept;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const stamped& s = blocks[i];
      rig_.machine->expect(stream_, s.block, s.stamp, s.bytes, [&](std::size_t, unsigned char) { ++wrong; });
      if (i % 2 == 0) {
        deallocate(s.block);
      } else {
        kept.push_back(s);
      }
    }
    blocks = kept;
  }
  rig_.machine->synchronize(stream_);
  EXPECT_EQ(wrong, 0);
  for (const stamped& s : blocks) deallocate(s.block);
}

TEST_P(conformance, case_B41_zero_bytes_are_null_and_no_error) {
  const std::uint64_t count = rig_.statistics().allocations;
  auto* p = reinterpret_cast<void*>(0x1234);
  p = allocate(0);
  EXPECT_EQ(p, nullptr);
  EXPECT_EQ(try_allocate(0), nullptr);
  void* r = allocate(1);
  EXPECT_NE(r, nullptr);
  deallocate(p);
  deallocate(nullptr);
  weir::deallocate(nullptr);
  rig_.service->deallocate(nullptr);
  std::thread([&] { weir::deallocate(nullptr); }).join();
  deallocate(r);
  EXPECT_EQ(rig_.statistics().allocations, count + 1);
  EXPECT_THAT(rig_.misuses(), testing::IsEmpty());
}

TEST_P(conformance, case_B39_sizes_that_wrap_are_out_of_memory) {
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  void* warm = allocate(1000);
  deallocate(warm);
  const device_statistics before = rig_.statistics();
  std::uint64_t refused = 0;
  for (const std::size_t bytes :
       {most, most - 1, most - 255, most - 256, most - 511, most - 64 * kib + 1, most - 2 * mib + 1, most / 2 + 1,
        most / 2, std::size_t{1} << 48, std::size_t{1} << 40, 4 * gib + 1}) {
    for (const std::size_t alignment : {std::size_t{256}, std::size_t{4096}, 2 * mib}) {
      SCOPED_TRACE(bytes);
      EXPECT_THROW(static_cast<void>(allocate(bytes, alignment)), weir::out_of_memory);
      EXPECT_EQ(try_allocate(bytes, alignment), nullptr);
      refused += 2;
    }
  }
  const device_statistics after = rig_.statistics();
  EXPECT_EQ(after.live, before.live);
  EXPECT_EQ(after.asked, before.asked);
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_EQ(after.out_of_memory, before.out_of_memory + refused);
  void* again = allocate(1000);
  EXPECT_NE(again, nullptr);
  deallocate(again);
}

TEST_P(conformance, a_freed_block_serves_the_next_request_of_its_size) {
  for (const std::size_t bytes : {256u, 5000u, 1u << 20, 3u << 20}) {
    void* p = allocate(bytes);
    deallocate(p);
    const std::uint64_t calls = rig_.service->statistics().total().growths;
    const std::uint64_t reserved = rig_.statistics().reserved;
    for (int i = 0; i < 100; ++i) deallocate(allocate(bytes));
    EXPECT_EQ(rig_.service->statistics().total().growths, calls);
    EXPECT_EQ(rig_.statistics().reserved, reserved);
  }
}

INSTANTIATE_TEST_SUITE_P(kinds, conformance, testing::ValuesIn(kinds()),
                         [](const auto& made) { return made.param.name; });

}  // namespace
}  // namespace weir::test
