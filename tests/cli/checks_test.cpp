// The checks of stress and replay find what they are there for.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/errors.hpp"
#include "cli/files.hpp"
#include "cli/final_checks.hpp"
#include "cli/replay.hpp"
#include "cli/replay_touch.hpp"
#include "cli/stress.hpp"

namespace weir::cli {
namespace {

using testing::HasSubstr;

rig_options simulated(int devices) {
  rig_options o;
  o.config.driver = backend::simulated;
  o.devices = devices;
  return o;
}

TEST(checks, all_is_well_where_all_is_freed) {
  fault_list faults;
  rig r(simulated(2));
  watch(r, faults);
  for (int d = 0; d < 2; ++d) {
    weir::lane lane = r.service().lane(d, r.make_stream(d));
    for (const std::size_t bytes : {100U, 70000U, 9000000U}) lane.deallocate(lane.allocate(bytes));
  }
  check_quiet(r, faults);
  check_end(r, faults);
  EXPECT_FALSE(faults.any()) << faults.texts().front();
}

TEST(checks, a_block_that_is_not_freed_is_told) {
  fault_list faults;
  rig r(simulated(1));
  weir::lane lane = r.service().lane(0, r.make_stream(0));
  void* p = lane.allocate(5000000);
  check_quiet(r, faults);
  ASSERT_TRUE(faults.any());
  EXPECT_THAT(faults.texts().front(), HasSubstr("live"));
  lane.deallocate(p);
}

TEST(checks, misuse_is_a_fault) {
  fault_list faults;
  rig r(simulated(1));
  watch(r, faults);
  weir::lane lane = r.service().lane(0, r.make_stream(0));
  void* p = lane.allocate(5000000);
  lane.deallocate(p);
  lane.deallocate(p);
  ASSERT_EQ(faults.count(), 1U);
  EXPECT_THAT(faults.texts().front(), HasSubstr("misuse"));
}

TEST(checks, stress_tells_of_memory_that_is_refused_without_need) {
  fault_list faults;
  rig r(simulated(1));
  r.machine()->fail("cuMemCreate", 3, sim::result::out_of_memory, 1000000);
  stress_options o;
  o.devices = 1;
  o.threads = 2;
  o.seconds = 20;  // ends at the first fault
  const stress_result result = run_stress(o, r, faults);
  ASSERT_TRUE(faults.any());
  EXPECT_THAT(faults.texts().front(), HasSubstr("refused"));
  EXPECT_LT(result.seconds, 15.0);
}

TEST(checks, touching_finds_overlaps_and_overwritten_blocks) {
  rig r(simulated(1));
  const stream_t stream = r.make_stream(0);
  weir::lane lane = r.service().lane(0, stream);
  char* p = static_cast<char*>(lane.allocate(8192 + 256));
  {
    block_toucher toucher(r, {stream}, 2);
    toucher.allocated(0, p, 8192, 0);
    EXPECT_THROW(toucher.allocated(1, p + 4096, 256, 0), fault_error);
  }
  {
    block_toucher toucher(r, {stream}, 2);
    toucher.allocated(0, p, 8192, 0);
    toucher.freeing(0, p, 8192, 0);
    EXPECT_NO_THROW(toucher.finish());
    EXPECT_THROW(toucher.freeing(0, p, 8192, 0), fault_error) << "freed twice";
  }
  {
    block_toucher toucher(r, {stream}, 2);
    toucher.allocated(0, p, 8192, 0);
    toucher.allocated(1, p + 8192, 8, 0);
    toucher.freeing(1, p + 8192, 8, 0);  // sends what was gathered
    r.machine()->fill(stream, p, 1, 8);
    toucher.freeing(0, p, 8192, 0);
    EXPECT_THROW(toucher.finish(), fault_error);
  }
  lane.deallocate(p);
}

TEST(checks, replay_leaves_nothing_behind_and_counts_the_same_every_time) {
  const cli_test::scratch_folder folder;
  std::string text = "op,id,bytes,stream\n";
  for (int i = 0; i < 300; ++i) {
    text += "a," + std::to_string(i) + "," + std::to_string(1000 + i * 40000) + "," + std::to_string(i % 3) + "\n";
    // Freed on another stream than it was allocated on.
    if (i % 2 == 1) text += "f," + std::to_string(i - 1) + "," + std::to_string(1000 + (i - 1) * 40000) + ",0\n";
  }
  const trace t = read_trace(folder.write("t.csv", text));
  replay_options o;
  o.config.driver = backend::simulated;
  o.repeat = 3;
  for (const bool touch : {false, true}) {
    o.touch = touch;
    const replay_result result = replay(t, o);
    ASSERT_TRUE(result.faults.empty()) << result.faults.front();
    ASSERT_EQ(result.runs.size(), 3U);
    for (const replay_run& run : result.runs) {
      EXPECT_EQ(run.events, t.events.size());
      EXPECT_EQ(run.peak_requested, t.peak_requested);
      EXPECT_GE(run.peak_reserved, t.peak_requested);
      EXPECT_GT(run.ns_per_event(), 0.0);
    }
    const replay_run total = result.total();
    EXPECT_EQ(total.events, t.events.size());
    EXPECT_GE(total.driver_seconds, result.runs[0].driver_seconds);
    EXPECT_GT(result.runs[0].driver_calls.at("cuMemCreate"), 0U);
  }
}

}  // namespace
}  // namespace weir::cli
