#include "cli/sizes.hpp"

#include <gtest/gtest.h>

namespace weir::cli {
namespace {

TEST(sizes, plain_and_suffixed) {
  EXPECT_EQ(parse_bytes("0"), 0U);
  EXPECT_EQ(parse_bytes("4096"), 4096U);
  EXPECT_EQ(parse_bytes("64K"), 65536U);
  EXPECT_EQ(parse_bytes("64k"), 65536U);
  EXPECT_EQ(parse_bytes("64KB"), 65536U);
  EXPECT_EQ(parse_bytes("64KiB"), 65536U);
  EXPECT_EQ(parse_bytes("64 KiB"), 65536U);
  EXPECT_EQ(parse_bytes("2M"), 2097152U);
  EXPECT_EQ(parse_bytes("1.5G"), 1610612736U);
  EXPECT_EQ(parse_bytes("1T"), std::uint64_t{1} << 40);
  EXPECT_EQ(parse_bytes("12B"), 12U);
  EXPECT_EQ(parse_bytes("9007199254740993"), 9007199254740993U);  // more than a double holds
}

TEST(sizes, refuses_what_is_no_size) {
  for (const char* text : {"", "K", "-1", "+1", "1.5", "x", "64KK", "64Kb8", "1e9", "inf", "nan", "0x10", "1..5G",
                           "1 2", "64  K", " 64", "9999999999T", "18446744073709551615", "18446744073709551616"}) {
    EXPECT_FALSE(parse_bytes(text)) << text;
  }
}

TEST(sizes, limit_in_bytes_or_times_the_peak) {
  EXPECT_EQ(parse_limit("2G")->of(7), std::uint64_t{2} << 30);
  EXPECT_EQ(parse_limit("1.03x")->of(1000), 1030U);
  EXPECT_EQ(parse_limit("2X")->of(500), 1000U);
  for (const char* text : {"", "x", "0x", "-1x", "1.03y", "1.03xx", "2000x"}) EXPECT_FALSE(parse_limit(text)) << text;
}

TEST(sizes, formatted_for_people) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.000 KiB");
  EXPECT_EQ(format_bytes(std::uint64_t{3} << 29), "1.500 GiB");
  EXPECT_EQ(format_bytes((std::uint64_t{1} << 20) - 1), "1.000 MiB");
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1234567), "1,234,567");
  EXPECT_EQ(format_seconds(0), "0 s");
  EXPECT_EQ(format_seconds(1.5), "1.5 s");
  EXPECT_EQ(format_seconds(0.00234), "2.34 ms");
  EXPECT_EQ(format_seconds(4.7e-9), "4.7 ns");
}

}  // namespace
}  // namespace weir::cli
