#include "weir/version.hpp"

#include <gtest/gtest.h>

#include <string>

namespace {

TEST(version, library_matches_headers) {
  const std::string expected = std::to_string(WEIR_VERSION_MAJOR) + "." + std::to_string(WEIR_VERSION_MINOR) + "." +
                               std::to_string(WEIR_VERSION_PATCH);
  EXPECT_EQ(weir::version(), expected);
}

}  // namespace
