// docs/sizes.md publishes the waste per class; it is written from the classes themselves. To write it anew:
//   WEIR_WRITE_DOCS=1 test_heap --gtest_filter='sizes_document.*'

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "heap/size_classes.hpp"

namespace weir::heap {
namespace {

constexpr const char* heading = R"(# Size classes and their waste

Written by `tests/heap/sizes_document_test.cpp` from `lib/heap/size_classes.hpp`; the same test holds the two together.

Blocks up to 1 MiB are cut from spans of equal blocks; larger ones are runs, rounded up to 64 KiB. Three kinds of waste:

* *inside, worst*: the share of a block that the smallest request of its class leaves unused;
* *inside, mean*: the same for requests spread evenly over the sizes of the class;
* *tail*: the share of a span behind its last block. It is counted as slack.

| class | block, bytes | inside, worst | inside, mean | span, pages | blocks | tail |
| ---: | ---: | ---: | ---: | ---: | ---: | ---: |
)";

std::string document() {
  std::string text = heading;
  double worst = 0;
  double worst_tail = 0;
  for (std::uint32_t c = 0; c < class_count; ++c) {
    const class_info& k = classes[c];
    const std::uint32_t least = c == 0 ? 1 : classes[c - 1].bytes + 1;
    const double inside = 100.0 * (k.bytes - least) / k.bytes;
    const double span = static_cast<double>(std::size_t{k.pages} << page_shift);
    const double tail = 100.0 * (span - static_cast<double>(k.blocks) * k.bytes) / span;
    if (least > 2048) worst = std::max(worst, inside);
    worst_tail = std::max(worst_tail, tail);
    text += fmt::format("| {} | {} | {:.1f} % | {:.1f} % | {} | {} | {:.2f} % |\n", c, k.bytes, inside, inside / 2,
                        k.pages, k.blocks, tail);
  }
  text +=
      fmt::format("\nAbove 2 KiB at most {:.1f} % of a block is unused; the longest tail is {:.2f} % of its span.\n",
                  worst, worst_tail);
  return text;
}

TEST(sizes_document, says_what_the_classes_are) {
  const std::string path = std::string(WEIR_SOURCE_DIR) + "/docs/sizes.md";
  if (std::getenv("WEIR_WRITE_DOCS") != nullptr) std::ofstream(path) << document();
  std::ifstream file(path);
  ASSERT_TRUE(file) << path << " is missing";
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), document()) << path << " is out of date";
}

}  // namespace
}  // namespace weir::heap
