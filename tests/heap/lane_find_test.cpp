// From any address to its block (C6), and to nothing where there is none.

#include <gtest/gtest.h>

#include <set>

#include "heap/dice.hpp"
#include "heap/lane_fixture.hpp"

namespace weir::heap {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

void expect_found(const lane_heap& lane, std::uint64_t block, std::uint64_t bytes, std::uint32_t cls,
                  std::uint64_t at) {
  block_place place;
  ASSERT_TRUE(lane_heap::find(at, place)) << "offset " << at - block << " of " << bytes;
  EXPECT_EQ(place.base, block);
  EXPECT_EQ(place.bytes, bytes);
  EXPECT_EQ(place.cls, cls);
  EXPECT_EQ(place.lane, &lane);
  EXPECT_EQ(place.in, find_slot(block));
}

bool found(std::uint64_t address) {
  block_place place;
  return lane_heap::find(address, place);
}

TEST(lane_find, any_address_of_any_block_of_any_class) {
  const mapped_lane lane(512 * mib);
  for (std::uint32_t cls = 0; cls < class_count; ++cls) {
    const std::uint64_t bytes = classes[cls].bytes;
    for (const void* p : refill(lane.heap, cls, 30)) {
      const std::uint64_t block = number_of(p);
      for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{1}, bytes / 2, bytes - 1}) {
        expect_found(lane.heap, block, bytes, cls, block + offset);
      }
      if (HasFatalFailure()) return;
    }
  }
}

TEST(lane_find, each_page_of_a_large_run) {
  const mapped_lane lane(64 * mib);
  for (const std::size_t bytes : {mib + page_bytes, 9 * mib, 33 * mib}) {
    const std::uint64_t run = number_of(lane->take_run(bytes, 256, false));
    for (std::uint64_t offset = 0; offset < bytes; offset += page_bytes) {
      expect_found(lane.heap, run, bytes, class_count, run + offset);
      expect_found(lane.heap, run, bytes, class_count, run + offset + page_bytes - 1);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(lane_find, tells_the_state_of_the_blocks_first_granule) {
  const mapped_lane lane(mib);
  const std::uint64_t block = number_of(refill(lane.heap, 4, 1)[0]);
  state_of(block)->store(code_of(4) | live_bit);
  block_place place;
  ASSERT_TRUE(lane_heap::find(block + 1000, place));
  EXPECT_EQ(place.state, code_of(4) | live_bit);
}

TEST(lane_find, no_block_in_tails_free_pages_or_foreign_addresses) {
  const mapped_lane lane(4 * mib);
  const std::uint64_t block = number_of(refill(lane.heap, 5, 1)[0]);  // 42 blocks of 1536 bytes, a tail of 1024
  EXPECT_TRUE(found(block + 42 * 1536 - 1));
  EXPECT_FALSE(found(lane.base + 42 * 1536));
  EXPECT_FALSE(found(lane.base + page_bytes - 1));
  EXPECT_FALSE(found(lane.base + page_bytes));      // a free page
  EXPECT_FALSE(found(lane.base + 5 * mib));         // never mapped
  EXPECT_FALSE(found(lane.base + slot_bytes - 1));  // the end of the piece
  EXPECT_FALSE(found(lane.base - 1));
  EXPECT_FALSE(found(fresh_base(slot_bytes)));
  EXPECT_FALSE(found(0));
  EXPECT_FALSE(found(~std::uint64_t{0}));
}

TEST(lane_find, nothing_of_a_run_after_its_free) {
  const mapped_lane lane(16 * mib);
  const std::uint64_t run = number_of(lane->take_run(9 * mib, 256, false));
  ASSERT_TRUE(lane->free_run(*find_slot(run), run));
  for (std::uint64_t offset = 0; offset < 9 * mib; offset += page_bytes) ASSERT_FALSE(found(run + offset)) << offset;
  // A shorter run in its place: what led back to the long one's beginning leads to no block.
  ASSERT_EQ(number_of(lane->take_run(2 * mib, 256, false)), run);
  EXPECT_TRUE(found(run + 2 * mib - 1));
  for (std::uint64_t offset = 2 * mib; offset < 9 * mib; offset += page_bytes)
    ASSERT_FALSE(found(run + offset)) << offset;
}

TEST(lane_find, a_span_that_crosses_into_the_next_slot) {
  mapped_lane lane(0, 2 * slot_bytes);
  for (const std::uint32_t cls : {9u, 33u, 66u, 79u}) {
    const class_info& k = classes[cls];
    // An odd number of pages before the edge; a page alone is shifted to end there.
    const std::uint32_t before = k.pages == 1 ? 1 : k.pages / 2;
    const std::uint32_t start = lane.first + pages_per_slot - before;
    const std::uint32_t length = k.pages;
    lane->pages.release(start, length);
    ASSERT_TRUE(lane->pages.claim_at(start, length));
    std::vector<void*> blocks(magazine::capacity);
    blocks.resize(lane->refill_from(start, cls, blocks.data(), magazine::capacity));
    const std::vector<void*> rest = drain(lane.heap, cls);
    blocks.insert(blocks.end(), rest.begin(), rest.end());
    EXPECT_EQ(blocks.size(), k.blocks);
    std::set<const slot*> slots;
    for (const void* p : blocks) {
      const std::uint64_t block = number_of(p);
      slots.insert(find_slot(block));
      for (const std::uint64_t offset : {0u, k.bytes / 2, k.bytes - 1}) {
        expect_found(lane.heap, block, k.bytes, cls, block + offset);
      }
    }
    EXPECT_EQ(slots.size(), k.pages == 1 ? 1u : 2u);
    lane->bin_limit = 0;
    flush(lane.heap, cls, blocks);
    EXPECT_EQ(lane->release_free_spans(), length);
    ASSERT_TRUE(lane->pages.claim_at(start, length));
    EXPECT_STREQ(lane->fault(), nullptr);
  }
}

// Random runs and spans side by side, the truth kept in a map.
TEST(lane_find, agrees_with_a_map_of_all_blocks) {
  const mapped_lane lane(128 * mib);
  dice d(5);
  struct block {
    std::uint64_t at;
    std::uint64_t bytes;
    std::uint32_t cls;
  };
  std::vector<block> live;
  for (int step = 0; step < 6000; ++step) {
    if (live.size() < 20 || d.chance(2)) {
      if (d.chance(3)) {
        const std::size_t bytes = (17 + d.skewed(0, 100)) * page_bytes;
        if (const void* p = lane->take_run(bytes, page_bytes << d.below(6), false); p != nullptr) {
          live.push_back({number_of(p), bytes, class_count});
        }
      } else {
        const std::uint32_t cls = d.below(class_count);
        for (const void* p : refill(lane.heap, cls, 1)) live.push_back({number_of(p), classes[cls].bytes, cls});
      }
    } else {
      block& b = live[d.below(static_cast<std::uint32_t>(live.size()))];
      if (b.cls == class_count) {
        ASSERT_TRUE(lane->free_run(*find_slot(b.at), b.at));
      } else {
        lane->give_block(*find_slot(b.at), b.at);
      }
      b = live.back();
      live.pop_back();
    }
    if (d.chance(50)) lane->release_free_spans();
    const block& b = live[d.below(static_cast<std::uint32_t>(live.size()))];
    expect_found(lane.heap, b.at, b.bytes, b.cls, b.at + d.roll() % b.bytes);
    if (HasFatalFailure()) FAIL() << "step " << step;
    if (step % 500 == 0) lane.expect_sound();
  }
  lane.expect_sound();
}

}  // namespace
}  // namespace weir::heap
