#include "weir/statistics.hpp"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(statistics, totals_are_sums_over_devices) {
  statistics s;
  s.devices.resize(2);
  s.devices[0].live = 5;
  s.devices[0].lanes = 1;
  s.devices[1].device = 1;
  s.devices[1].live = 7;
  s.devices[1].reserved = 100;
  s.devices[1].asked = 3;
  const device_statistics sum = s.total();
  EXPECT_EQ(sum.live, 12u);
  EXPECT_EQ(sum.lanes, 1u);
  EXPECT_EQ(sum.reserved, 100u);
  EXPECT_EQ(sum.asked, 3u);
  EXPECT_EQ(sum.device, -1);
}

TEST(statistics, driver_calls_are_summed_over_kinds) {
  statistics s;
  EXPECT_EQ(s.total_driver_calls(), 0u);
  s.driver_calls = {{"cuMemCreate", 3, 0.25}, {"cuMemMap", 4, 0.5}};
  EXPECT_EQ(s.total_driver_calls(), 7u);
  EXPECT_DOUBLE_EQ(s.driver_seconds(), 0.75);
}

}  // namespace
}  // namespace weir
