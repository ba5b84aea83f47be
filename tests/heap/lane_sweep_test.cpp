// Wholly free spans go back to the pages: also when several threads look for them at once, as all that grow do.

#include <gtest/gtest.h>

#include "heap/dice.hpp"
#include "heap/lane_fixture.hpp"
#include "heap/team.hpp"

namespace weir::heap {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;
constexpr std::uint32_t cls = 15;  // 16 blocks of 4 KiB in a span of one page

// Every span listed: those in `used` with one block out, all others free.
std::vector<void*> spans_with_one_block_out(const mapped_lane& lane, dice& d) {
  std::vector<void*> kept;
  std::vector<void*> freed;
  std::uint64_t span = 0;
  for (void* b : drain(lane.heap, cls)) {
    const std::uint64_t here = number_of(b) / page_bytes;
    const bool keep = here != span && d.chance(3);
    span = here;
    (keep ? kept : freed).push_back(b);
  }
  flush(lane.heap, cls, freed);
  return kept;
}

TEST(lane_sweep, sweeps_at_once_leave_no_free_span) {
  const mapped_lane lane(8 * mib);
  lane->bin_limit = 0;
  dice d(1);
  for (std::uint32_t round = 0; round < 20 * effort; ++round) {
    const std::vector<void*> kept = spans_with_one_block_out(lane, d);
    in_threads(3, [&](std::uint32_t) { lane->release_free_spans(); });
    ASSERT_EQ(lane->count().in_spans, kept.size() * page_bytes) << "round " << round;
    lane.expect_sound();
    flush(lane.heap, cls, kept);
    EXPECT_EQ(lane->release_free_spans(), kept.size());
  }
  lane.expect_all_free();
}

// After any traffic one sweep is enough.
TEST(lane_sweep, one_sweep_after_a_crowd_finds_all) {
  const mapped_lane lane(8 * mib);
  lane->bin_limit = 0;
  for (std::uint32_t round = 0; round < 20 * effort; ++round) {
    in_threads(3, [&](std::uint32_t who) {
      dice d(round * 4 + who);
      std::vector<void*> mine;
      for (std::uint32_t step = 0; step < 200; ++step) {
        if (d.chance(20)) lane->release_free_spans();
        if (d.chance(2)) {
          for (void* b : refill(lane.heap, cls, 1 + d.below(30))) mine.push_back(b);
        } else {
          flush(lane.heap, cls, mine);
          mine.clear();
        }
      }
      flush(lane.heap, cls, mine);
    });
    lane->release_free_spans();
    ASSERT_EQ(lane->count().free_pages, 8 * mib) << "round " << round;
  }
  lane.expect_all_free();
}

}  // namespace
}  // namespace weir::heap
