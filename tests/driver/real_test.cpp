// Opening the installed driver: what absent, foreign and old libraries give.
#include "driver/real.hpp"

#include <gtest/gtest.h>

namespace weir::test {
namespace {

TEST(real_driver, an_absent_library_gives_one_line) {
  driver::table t;
  const driver::real_driver found = driver::open_driver_library("libweir-no-such-driver.so.1", t);
  EXPECT_EQ(found.functions, nullptr);
  EXPECT_EQ(found.error.rfind("no CUDA driver: libweir-no-such-driver.so.1", 0), 0U) << found.error;
  EXPECT_EQ(found.error.find('\n'), std::string::npos);
}

TEST(real_driver, a_library_that_is_no_driver_is_named) {
  driver::table t;
  const driver::real_driver found = driver::open_driver_library("libm.so.6", t);
  EXPECT_EQ(found.functions, nullptr);
  EXPECT_EQ(found.error, "no CUDA driver: libm.so.6 does not answer cuDriverGetVersion");
}

TEST(real_driver, an_old_driver_is_refused_with_both_versions) {
  driver::table t;
  const driver::real_driver found = driver::open_driver_library(WEIR_OLD_DRIVER, t);
  EXPECT_EQ(found.functions, nullptr);
  EXPECT_EQ(found.error, "the CUDA driver is too old: it is of CUDA 12.2, Weir needs 12.4 or newer");
  EXPECT_EQ(found.version, 12020);
}

TEST(real_driver, a_driver_that_lacks_a_needed_call_is_refused_by_its_name) {
  driver::table t;
  const driver::real_driver found = driver::open_driver_library(WEIR_PARTIAL_DRIVER, t);
  EXPECT_EQ(found.functions, nullptr);
  EXPECT_EQ(found.error, "the CUDA driver (CUDA 12.4) lacks cuMemMap");
}

TEST(real_driver, optional_calls_may_be_missing) {
  driver::table t;
  const driver::real_driver found = driver::open_driver_library(WEIR_MINIMAL_DRIVER, t);
  ASSERT_NE(found.functions, nullptr) << found.error;
  EXPECT_EQ(found.functions->cuCtxRecordEvent, nullptr);
  EXPECT_NE(found.functions->cuMemMap, nullptr);
  EXPECT_EQ(found.version, 12040);
}

TEST(real_driver, the_installed_driver_opens_or_says_why_not) {
  const driver::real_driver found = driver::open_real_driver();
  if (found.functions == nullptr) {
    EXPECT_FALSE(found.error.empty());
    GTEST_SKIP() << found.error;
  }
  EXPECT_GE(found.version, driver::minimum_driver);
  EXPECT_EQ(driver::open_real_driver().functions, found.functions);  // one table for all
}

}  // namespace
}  // namespace weir::test
