#include "weir/error.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace weir {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr std::uint64_t mib = std::uint64_t{1} << 20;
constexpr std::uint64_t gib = std::uint64_t{1} << 30;

// A device of 8 GiB, full of live blocks, that was asked for 1 GiB more.
out_of_memory_report full() {
  out_of_memory_report r;
  r.asked = gib;
  r.device = 3;
  r.capacity = 8 * gib;
  r.live = 8 * gib;
  r.reserved = 8 * gib;
  return r;
}

std::string text_of(const out_of_memory_report& r) {
  std::string text = out_of_memory(r).what();
  EXPECT_THAT(text, Not(HasSubstr("\n")));
  return text;
}

TEST(error, keeps_code_and_text) {
  const error e(errc::not_supported, "device 1 has no VMM");
  EXPECT_EQ(e.code(), errc::not_supported);
  EXPECT_STREQ(e.what(), "device 1 has no VMM");
}

TEST(out_of_memory, is_a_bad_alloc_that_survives_copies) {
  std::string text;
  try {
    try {
      throw out_of_memory(full());
    } catch (const std::bad_alloc& e) {
      text = e.what();
      throw;
    }
  } catch (const out_of_memory& e) {
    // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): the copy is what is tested
    const out_of_memory copy(e);
    EXPECT_EQ(copy.what(), text);
    EXPECT_EQ(copy.report().asked, gib);
    EXPECT_EQ(copy.report().device, 3);
  }
}

TEST(out_of_memory, says_what_was_asked_and_what_is_where) {
  out_of_memory_report r = full();
  r.live = 6 * gib;
  r.cached = 3 * mib;
  r.free_pages = 512 * mib;
  r.largest_free = 256 * mib;
  r.pending = 128 * mib;
  r.stranded = 64 * mib;
  r.limit = 7 * gib;
  r.reserved = 7 * gib;
  r.others = 100 * mib;
  EXPECT_THAT(text_of(r),
              AllOf(HasSubstr("1073741824 B (1.000 GiB) asked on device 3"), HasSubstr("live 6.000 GiB"),
                    HasSubstr("cached 3.000 MiB"), HasSubstr("free pages 512.0 MiB (largest piece 256.0 MiB)"),
                    HasSubstr("pending 128.0 MiB (stranded 64.00 MiB)"), HasSubstr("reserved 7.000 GiB of 8.000 GiB"),
                    HasSubstr("limit 7.000 GiB"), HasSubstr("others hold 100.0 MiB")));
}

TEST(out_of_memory, without_a_limit_none_is_named) {
  EXPECT_THAT(text_of(full()), AllOf(HasSubstr("limit none"), Not(HasSubstr("raise the limit"))));
}

TEST(out_of_memory, advises_a_higher_limit_where_that_is_enough) {
  out_of_memory_report r = full();
  r.live = r.reserved = r.limit = 4 * gib;
  EXPECT_THAT(text_of(r), HasSubstr("raise the limit by 1.000 GiB"));
  r.largest_free = 256 * mib;  // a part is there already
  EXPECT_THAT(text_of(r), HasSubstr("raise the limit by 768.0 MiB"));
  r.others = 4 * gib;  // the device has no more: a higher limit would not help
  EXPECT_THAT(text_of(r), Not(HasSubstr("raise the limit")));
}

TEST(out_of_memory, advises_waiting_for_pending_frees) {
  out_of_memory_report r = full();
  EXPECT_THAT(text_of(r), Not(HasSubstr("streams pass")));
  r.pending = 2 * gib;
  EXPECT_THAT(text_of(r), HasSubstr("let the streams pass that 2.000 GiB of freed memory waits for"));
  r.stranded = 2 * gib;
  EXPECT_THAT(text_of(r), AllOf(HasSubstr("call quiesced(device)"), Not(HasSubstr("streams pass"))));
}

TEST(out_of_memory, tells_of_others_on_the_device) {
  out_of_memory_report r = full();
  r.live = r.reserved = 4 * gib;
  r.others = 4 * gib;
  EXPECT_THAT(text_of(r), HasSubstr("free some of the 4.000 GiB that others hold on the device"));
}

TEST(out_of_memory, tells_of_free_memory_in_pieces) {
  out_of_memory_report r = full();
  r.live = 6 * gib;
  r.free_pages = 2 * gib;
  r.largest_free = 512 * mib;
  EXPECT_THAT(text_of(r), AllOf(HasSubstr("2.000 GiB is free, but in smaller pieces"),
                                HasSubstr("ask for " + std::to_string(512 * mib) + " B less")));
}

TEST(out_of_memory, a_request_above_the_device_can_never_work) {
  out_of_memory_report r = full();
  r.asked = ~std::uint64_t{0};
  EXPECT_THAT(text_of(r),
              AllOf(HasSubstr("18446744073709551615 B"), HasSubstr("no device memory of this size exists")));
}

TEST(out_of_memory, an_empty_report_is_one_line_too) {
  EXPECT_THAT(text_of({}), AllOf(HasSubstr("0 B (0 B) asked"), Not(HasSubstr("  "))));
}

}  // namespace
}  // namespace weir
