// Pieces come, go and come again, at the same addresses and at others.

#include <gtest/gtest.h>

#include <atomic>

#include "heap/dice.hpp"
#include "heap/lane_fixture.hpp"
#include "heap/team.hpp"

namespace weir::heap {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

bool found(std::uint64_t address) {
  block_place place;
  return lane_heap::find(address, place);
}

TEST(lane_pieces, addresses_and_pages_lead_to_each_other) {
  lane_heap& lane = *fresh_lane();
  const std::uint64_t a = fresh_base(3 * slot_bytes);
  const std::uint64_t b = fresh_base(slot_bytes);
  const std::uint32_t first_a = lane.add_piece(a, 3 * slot_bytes);
  const std::uint32_t first_b = lane.add_piece(b, slot_bytes);
  for (const std::uint64_t offset : {std::uint64_t{0}, 5 * page_bytes, slot_bytes, 3 * slot_bytes - page_bytes}) {
    const slot* s = find_slot(a + offset);
    ASSERT_NE(s, nullptr);
    EXPECT_EQ(s->lane, &lane);
    EXPECT_EQ(lane_heap::page_of(*s, a + offset), first_a + (offset >> page_shift));
    EXPECT_EQ(lane.address_of(first_a + static_cast<std::uint32_t>(offset >> page_shift)), a + offset);
  }
  EXPECT_EQ(lane.address_of(first_b), b);
  EXPECT_NE(find_slot(b), find_slot(a));
  EXPECT_EQ(find_slot(a + 3 * slot_bytes - 1)->piece, find_slot(a)->piece);
  EXPECT_NE(find_slot(b)->piece, find_slot(a)->piece);
}

// Fills the mapped part with blocks, checks them, frees all and unmaps.
void use(lane_heap& lane, std::uint64_t base, std::uint32_t first, dice& d) {
  lane.pages.release(first, 64);
  const std::uint32_t cls = d.below(class_count);
  void* run = lane.take_run(mib + 1, 256, false);
  ASSERT_EQ(number_of(run), base);
  state_of(base)->store(code_large | live_bit);
  std::vector<void*> blocks = drain(lane, cls);
  for (const void* p : blocks) {
    const std::uint64_t at = number_of(p);
    ASSERT_TRUE(found(at));
    state_of(at)->store(code_of(cls) | live_bit);
  }
  flush(lane, cls, blocks);
  ASSERT_TRUE(lane.free_run(*find_slot(base), base));
  lane.empty_bins();
  lane.release_free_spans();
  ASSERT_STREQ(lane.fault(), nullptr);
  ASSERT_TRUE(lane.pages.claim_at(first, 64));
}

TEST(lane_pieces, a_removed_piece_is_forgotten_and_can_come_back) {
  lane_heap& lane = *fresh_lane();
  const std::uint64_t same = fresh_base(slot_bytes);
  dice d(3);
  for (int round = 0; round < 20; ++round) {
    const std::uint64_t base = round % 2 == 0 ? same : fresh_base(slot_bytes);
    const std::uint32_t first = lane.add_piece(base, slot_bytes);
    ASSERT_NE(first, no_page);
    EXPECT_EQ(first, 0u) << "its numbers are free again";
    // Nothing of what lay there before is remembered.
    const atomic_state* states = find_slot(base)->states;
    for (std::uint32_t g = 0; g < 64 * page_bytes / granule_bytes; ++g) ASSERT_EQ(states[g].load(), 0);
    ASSERT_FALSE(found(base));
    use(lane, base, first, d);
    lane.remove_piece(first);
    EXPECT_EQ(find_slot(base), nullptr);
    EXPECT_FALSE(found(base));
    EXPECT_EQ(lane.count().free_pages, 0u);
  }
}

TEST(lane_pieces, removing_one_leaves_its_neighbours) {
  lane_heap& lane = *fresh_lane();
  std::uint64_t bases[3];
  std::uint32_t firsts[3];
  for (int i = 0; i < 3; ++i) {
    bases[i] = fresh_base(2 * slot_bytes);
    firsts[i] = lane.add_piece(bases[i], 2 * slot_bytes);
  }
  lane.remove_piece(firsts[1]);
  EXPECT_EQ(find_slot(bases[1]), nullptr);
  EXPECT_EQ(find_slot(bases[1] + slot_bytes), nullptr);
  for (const int i : {0, 2}) {
    EXPECT_NE(find_slot(bases[i]), nullptr);
    EXPECT_NE(find_slot(bases[i] + slot_bytes), nullptr);
  }
  // The hole takes two single pieces; the neighbours are not disturbed by their going.
  for (int round = 0; round < 3; ++round) {
    const std::uint32_t a = lane.add_piece(fresh_base(slot_bytes), slot_bytes);
    const std::uint32_t b = lane.add_piece(fresh_base(slot_bytes), slot_bytes);
    EXPECT_EQ(a, firsts[1]);
    EXPECT_EQ(b, firsts[1] + pages_per_slot);
    lane.remove_piece(a);
    EXPECT_NE(find_slot(lane.address_of(b)), nullptr);
    lane.remove_piece(b);
  }
  EXPECT_NE(find_slot(bases[2]), nullptr);
}

TEST(lane_pieces, page_numbers_run_out_without_harm) {
  lane_heap& lane = *fresh_lane();
  EXPECT_EQ(lane.add_piece(fresh_base(slot_bytes), (lane_slots + 1) * slot_bytes), no_page);
  const std::uint64_t base = fresh_base(lane_slots * slot_bytes);
  EXPECT_EQ(lane.add_piece(base, lane_slots * slot_bytes), 0u);
  const std::uint64_t refused = fresh_base(slot_bytes);
  EXPECT_EQ(lane.add_piece(refused, slot_bytes), no_page);
  EXPECT_EQ(find_slot(refused), nullptr);
  lane.remove_piece(0);
  EXPECT_EQ(lane.add_piece(refused, slot_bytes), 0u);
}

// An address that was freed long ago may be asked for at any time, also while its piece goes and another one comes.
TEST(lane_pieces, stale_addresses_are_looked_up_while_pieces_come_and_go) {
  lane_heap& lane = *fresh_lane();
  const std::uint64_t bases[2] = {fresh_base(slot_bytes), fresh_base(slot_bytes)};
  std::atomic<bool> done{false};
  std::atomic<std::uint64_t> wrong{0};
  in_threads(3, [&](std::uint32_t who) {
    dice d(who);
    if (who == 0) {
      for (std::uint32_t round = 0; round < 60 * effort; ++round) {
        const std::uint64_t base = bases[d.below(2)];
        const std::uint32_t first = lane.add_piece(base, slot_bytes);
        use(lane, base, first, d);
        lane.remove_piece(first);
      }
      done = true;
      return;
    }
    while (!done) {
      const std::uint64_t address = bases[d.below(2)] + d.below(70 * page_bytes);
      block_place place;
      if (!lane_heap::find(address, place)) continue;
      // What is found contains the address.
      if (place.lane != &lane || address < place.base || address - place.base >= place.bytes) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace weir::heap
