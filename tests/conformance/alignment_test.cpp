// Every kind: alignment (C9).

#include <gmock/gmock.h>

#include "conformance/kinds.hpp"

namespace weir::test {
namespace {

TEST_P(conformance, every_power_of_two_up_to_2_mib_is_met) {
  std::vector<void*> blocks;
  for (std::size_t alignment = 1; alignment <= max_alignment; alignment *= 2) {
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{300}, alignment == 1 ? 1 : alignment - 1, alignment,
                                    alignment + 1, std::size_t{100000}}) {
      SCOPED_TRACE(testing::Message() << bytes << " bytes at " << alignment);
      void* p = allocate(bytes, alignment);
      ASSERT_NE(p, nullptr);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % std::max(alignment, default_alignment), 0u);
      EXPECT_EQ(info(p).base, p);
      EXPECT_GE(info(p).bytes, bytes);
      blocks.push_back(p);
    }
  }
  // Freed by the pointer as given, in an order that leaves holes; the alignment holds in the holes too.
  for (std::size_t i = 0; i < blocks.size(); i += 2) deallocate(blocks[i]);
  for (std::size_t alignment = 256; alignment <= max_alignment; alignment *= 4) {
    void* p = allocate(5000, alignment);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % alignment, 0u);
    deallocate(p);
  }
  for (std::size_t i = 1; i < blocks.size(); i += 2) deallocate(blocks[i]);
  EXPECT_THAT(rig_.misuses(), testing::IsEmpty());
}

TEST_P(conformance, other_alignments_are_invalid_arguments) {
  const device_statistics before = rig_.statistics();
  for (const std::size_t alignment :
       {std::size_t{0}, std::size_t{3}, std::size_t{255}, std::size_t{257}, 3 * mib, 4 * mib, gib, ~std::size_t{0}}) {
    SCOPED_TRACE(alignment);
    for (const std::size_t bytes : {std::size_t{1}, 2 * mib}) {
      try {
        static_cast<void>(allocate(bytes, alignment));
        ADD_FAILURE() << "was not refused";
      } catch (const weir::error& e) {
        EXPECT_EQ(e.code(), errc::invalid_argument);
        EXPECT_THAT(e.what(), testing::HasSubstr(std::to_string(alignment))) << "the message does not name it";
      }
      EXPECT_EQ(try_allocate(bytes, alignment), nullptr);
    }
  }
  EXPECT_EQ(rig_.statistics().live, before.live);
  EXPECT_EQ(rig_.statistics().allocations, before.allocations);
}

}  // namespace
}  // namespace weir::test
