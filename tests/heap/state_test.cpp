#include "heap/state.hpp"

#include <gtest/gtest.h>

#include <set>

namespace weir::heap {
namespace {

TEST(state, codes_invert_and_differ) {
  std::set<state_byte> seen{0, code_pending, code_used, code_large};
  EXPECT_EQ(seen.size(), 4u);
  for (std::uint32_t c = 0; c < class_count; ++c) {
    const state_byte code = code_of(c);
    EXPECT_TRUE(is_class(code));
    EXPECT_EQ(class_of_code(code), c);
    EXPECT_EQ(code & live_bit, 0);
    EXPECT_TRUE(seen.insert(code).second) << "class " << c << " has the code of another state";
  }
}

TEST(state, only_class_codes_are_classes) {
  std::uint32_t codes = 0;
  for (std::uint32_t byte = 0; byte < 256; ++byte) codes += is_class(static_cast<state_byte>(byte)) ? 1 : 0;
  EXPECT_EQ(codes, class_count);
  // A live byte is no code: callers mask it first.
  for (std::uint32_t c = 0; c < class_count; ++c) EXPECT_FALSE(is_class(code_of(c) | live_bit));
}

// Bytes that keep a block's waste lie between state bytes: none of their values may look live.
TEST(state, waste_bytes_never_look_live) {
  for (const class_info& c : classes) EXPECT_EQ(c.waste_mask & live_bit, 0);
}

}  // namespace
}  // namespace weir::heap
