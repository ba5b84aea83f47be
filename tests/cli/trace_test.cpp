#include "cli/trace.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "cli/errors.hpp"
#include "cli/files.hpp"

namespace weir::cli {
namespace {

using cli_test::scratch_folder;

const std::string header = "op,id,bytes,stream\n";

TEST(trace, reads_plain_and_gzipped_alike) {
  const scratch_folder folder;
  const std::string text =
      "# recorded: run_seconds=2.5 peak=3000\n" + header + "a,70,1000,5\na,9,2000,0\nf,70,1000,0\na,70,512,5\n";
  for (const std::string& path : {folder.write("t.csv", text), folder.write_gzip("t.csv.gz", text)}) {
    const trace t = read_trace(path);
    ASSERT_EQ(t.events.size(), 4U);
    EXPECT_EQ(t.blocks, 3U);
    EXPECT_EQ(t.streams, 2U);
    EXPECT_EQ(t.live_at_end, 2U);
    EXPECT_EQ(t.peak_requested, 3000U);
    // Ids and streams become dense; an id that is used again is a new block.
    EXPECT_EQ(t.events[0].block, 0U);
    EXPECT_EQ(t.events[0].stream, 0U);
    EXPECT_EQ(t.events[1].block, 1U);
    EXPECT_EQ(t.events[1].stream, 1U);
    EXPECT_FALSE(t.events[2].allocate);
    EXPECT_EQ(t.events[2].block, 0U);
    EXPECT_EQ(t.events[2].stream, 1U) << "the stream of a free is its own";
    EXPECT_EQ(t.events[3].block, 2U);
    EXPECT_EQ(t.place(3), path + ":6");
    EXPECT_EQ(t.note("run_seconds"), 2.5);
    EXPECT_EQ(t.note("peak"), 3000);
    EXPECT_FALSE(t.note("seconds"));
  }
}

TEST(trace, reads_without_comment_and_last_line_break_and_with_carriage_returns) {
  const scratch_folder folder;
  const trace t = read_trace(folder.write("t.csv", "op,id,bytes,stream\r\na,1,8,0\r\nf,1,8,0"));
  EXPECT_EQ(t.events.size(), 2U);
  EXPECT_EQ(t.comment, "");
  EXPECT_FALSE(t.note("run_seconds"));
}

TEST(trace, reads_the_log_of_rmm) {
  const scratch_folder folder;
  const trace t = read_trace(folder.write("rmm.csv",
                                          "Thread,Time,Action,Pointer,Size,Stream\n"
                                          "140,12:00:00.000001,allocate,0x7f0000000000,1048576,0x0\n"
                                          "140,12:00:00.000002,allocate failure,0x0,99999999999,0x0\n"
                                          "141,12:00:00.000003,allocate,0x7f0000200000,4096,0x55aa\n"
                                          "140,12:00:00.000004,allocate,(nil),0,0x0\n"
                                          "140,12:00:00.000005,free,0x7f0000000000,1048576,0x0\n"
                                          "140,12:00:00.000006,free,(nil),0,0x0\n"
                                          "140,12:00:00.000007,allocate,0x7f0000000000,64,0x0\n"));
  ASSERT_EQ(t.events.size(), 4U);
  EXPECT_EQ(t.blocks, 3U);
  EXPECT_EQ(t.streams, 2U);
  EXPECT_EQ(t.live_at_end, 2U);
  EXPECT_EQ(t.peak_requested, 1048576U + 4096U);
  EXPECT_EQ(t.events[2].line, 6U);
  EXPECT_EQ(t.events[3].block, 2U);
}

TEST(trace, the_recorded_ones_have_the_peak_that_their_header_tells) {
  for (const char* name : {"bert_large", "gnn", "infer", "llama1b", "resnet"}) {
    const trace t = read_trace(std::string(WEIR_SOURCE_DIR) + "/tests/traces/" + name + ".csv.gz");
    EXPECT_EQ(static_cast<double>(t.peak_requested), t.note("requested_peak").value()) << name;
    EXPECT_GT(t.note("run_seconds").value(), 0.0) << name;
  }
}

TEST(trace, scaling_leaves_small_blocks_alone) {
  const scratch_folder folder;
  trace t =
      read_trace(folder.write("t.csv", header + "a,1,65536,0\na,2,65537,0\nf,1,65536,0\nf,2,65537,0\na,3,131072,0\n"));
  scale_trace(t, 1.25);
  EXPECT_EQ(t.events[0].bytes, 65536U);
  EXPECT_EQ(t.events[1].bytes, 81921U);
  EXPECT_EQ(t.events[3].bytes, 81921U);
  EXPECT_EQ(t.events[4].bytes, 163840U);
  EXPECT_EQ(t.peak_requested, 163840U);
}

struct damaged {
  const char* name;
  std::string text;
  std::string message;  // after the path
};

void PrintTo(const damaged& d, std::ostream* out) { *out << d.name; }

class trace_damage : public testing::TestWithParam<damaged> {};

TEST_P(trace_damage, is_named_with_its_line) {
  const scratch_folder folder;
  const std::string path = folder.write("bad.csv", GetParam().text);
  try {
    const trace t = read_trace(path);
    FAIL() << "read " << t.events.size() << " events";
  } catch (const usage_error& e) {
    EXPECT_EQ(e.what(), path + GetParam().message);
  }
}

const std::string rmm = "Thread,Time,Action,Pointer,Size,Stream\n";

INSTANTIATE_TEST_SUITE_P(
    all, trace_damage,
    testing::Values(
        damaged{"empty", "", ":1: no header line"}, damaged{"comment_only", "# x\n", ":1: no header line"},
        damaged{"no_event", header, ":1: no event after the header"},
        damaged{
            "other_header", "id,bytes\n",
            ":1: the header 'id,bytes' is neither 'op,id,bytes,stream' nor 'Thread,Time,Action,Pointer,Size,Stream'"},
        damaged{"free_of_unknown", header + "a,1,8,0\nf,12,8,0\n", ":3: free of id 12 that is not live"},
        damaged{"double_free", header + "a,12,8,0\nf,12,8,0\nf,12,8,0\n", ":4: free of id 12 that is not live"},
        damaged{"double_allocation", "#\n" + header + "a,1,8,0\na,2,8,0\na,1,8,0\n",
                ":5: allocation of id 1 that is live since line 3"},
        damaged{"other_size", header + "a,1,8,0\nf,1,9,0\n",
                ":3: free of id 1 with 9 bytes, allocated with 8 in line 2"},
        damaged{"few_fields", header + "a,1,8\n", ":2: 3 fields instead of 4"},
        damaged{"many_fields", header + "a,1,8,0,0\n", ":2: 5 fields instead of 4"},
        damaged{"other_op", header + "b,1,8,0\n", ":2: op 'b' is neither a nor f"},
        damaged{"negative", header + "a,1,-8,0\n", ":2: bytes '-8' is not a number"},
        damaged{"text_for_number", header + "a,one,8,0\n", ":2: id 'one' is not a number"},
        damaged{"number_and_text", header + "a,1,8,0x\n", ":2: stream '0x' is not a number"},
        damaged{"missing_number", header + "a,1,,0\n", ":2: bytes '' is not a number"},
        damaged{"number_too_large", header + "a,1,18446744073709551616,0\n",
                ":2: bytes '18446744073709551616' is not a number"},
        damaged{"block_too_large", header + "a,1,281474976710657,0\n",
                ":2: size 281474976710657 is more than 2^48 bytes"},
        damaged{"line_too_long", header + std::string(70000, 'a') + "\n", ":2: a line of more than 65536 characters"},
        damaged{"control_characters", header + "\x1b[31m,1,8,0\n", ":2: op ' [31m' is neither a nor f"},
        damaged{"rmm_action", rmm + "1,0:0:0,grow,0x1,8,0x0\n",
                ":2: action 'grow' is none of allocate, free, allocate failure"},
        damaged{"rmm_free_of_unknown", rmm + "1,0:0:0,free,0xabc,8,0x0\n",
                ":2: free of pointer 0xabc that is not live"},
        damaged{"rmm_pointer", rmm + "1,0:0:0,allocate,xyz,8,0x0\n", ":2: pointer 'xyz' is not a number"},
        damaged{"rmm_fields", rmm + "1,0:0:0,free,0xabc,8\n", ":2: 5 fields instead of 6"}),
    [](const auto& one) { return one.param.name; });

TEST(trace, missing_file_and_folder_are_named) {
  const scratch_folder folder;
  for (const std::string& path : {folder.path("absent.csv"), folder.path("")}) {
    try {
      const trace t = read_trace(path);
      FAIL() << "read " << t.events.size() << " events";
    } catch (const usage_error& e) {
      EXPECT_THAT(e.what(), testing::StartsWith(path + ": "));
    }
  }
}

TEST(trace, damaged_gzip_data_is_named) {
  const scratch_folder folder;
  std::string text = header;
  for (int i = 0; i < 50000; ++i) text += "a," + std::to_string(i) + "," + std::to_string(i * 7919 % 100003) + ",0\n";
  const std::string cut = folder.write_gzip("cut.csv.gz", text, 100000);
  std::string bytes = cli_test::read_file(folder.write_gzip("good.csv.gz", text));
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x55);
  const std::string flipped = folder.write("flipped.csv.gz", bytes);
  for (const std::string& path : {cut, flipped}) {
    try {
      const trace t = read_trace(path);
      FAIL() << path << ": read " << t.events.size() << " events";
    } catch (const usage_error& e) {
      EXPECT_THAT(e.what(), testing::StartsWith(path + ":"));
    }
  }
}

}  // namespace
}  // namespace weir::cli
