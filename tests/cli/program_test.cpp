// Runs of the program itself: exit status, the one line on stderr, the keys of its JSON.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "cli/files.hpp"

namespace weir::cli {
namespace {

using cli_test::scratch_folder;
using nlohmann::json;
using testing::HasSubstr;

struct outcome {
  int status = -1;
  std::string out;
  std::string err;
};

// `arguments` go through a shell; `variables` stand before the program.
outcome run(const scratch_folder& folder, const std::string& arguments, const std::string& variables = "") {
  const std::string out = folder.path("stdout");
  const std::string err = folder.path("stderr");
  const std::string line = variables + " " + WEIR_PROGRAM + " " + arguments + " >" + out + " 2>" + err;
  const int status = std::system(line.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, cli_test::read_file(out), cli_test::read_file(err)};
}

// One line that starts with the program's name.
void expect_one_line(const outcome& o) {
  EXPECT_THAT(o.err, testing::StartsWith("weir: "));
  EXPECT_EQ(std::count(o.err.begin(), o.err.end(), '\n'), 1) << o.err;
  EXPECT_EQ(o.err.back(), '\n');
}

const std::string good_trace = "op,id,bytes,stream\na,1,1000,0\na,2,4000000,1\na,3,300,1\nf,1,1000,0\nf,2,4000000,1\n";

class program : public testing::Test {
 protected:
  scratch_folder folder_;
};

TEST_F(program, version_and_help) {
  const outcome version = run(folder_, "--version");
  EXPECT_EQ(version.status, 0);
  EXPECT_THAT(version.out, testing::MatchesRegex("weir [0-9]+\\.[0-9]+\\.[0-9]+\n"));
  for (const char* arguments : {"--help", "info --help", "stress --help", "replay --help"}) {
    const outcome help = run(folder_, arguments);
    EXPECT_EQ(help.status, 0) << arguments;
    EXPECT_EQ(help.err, "") << arguments;
    EXPECT_THAT(help.out, HasSubstr("--help")) << arguments;
  }
}

TEST_F(program, what_the_user_got_wrong_is_one_line_and_status_2) {
  const std::string bad = folder_.write("bad_trace.csv", "op,id,bytes,stream\na,1,8,0\nf,12,8,0\n");
  const std::string good = folder_.write("good.csv", good_trace);
  struct wrong {
    std::string arguments;
    std::string named;
  };
  const std::vector<wrong> all = {
      {"", "a command is required"},
      {"frobnicate", "frobnicate"},
      {"info frobnicate", "frobnicate"},
      {"info --frobnicate", "--frobnicate"},
      {"info --backend amd", "--backend"},
      {"stress --pattern chaos --backend sim", "--pattern"},
      {"stress --streams none --backend sim", "--streams"},
      {"stress --threads 0 --backend sim", "--threads"},
      {"stress --threads many --backend sim", "--threads"},
      {"stress --seconds -1 --backend sim", "--seconds"},
      {"stress --max 12Q --backend sim", "'12Q'"},
      {"stress --min 2M --max 1M --backend sim", "--min is above --max"},
      {"replay --backend sim", "trace"},
      {"replay --backend sim /nonexistent/t.csv", "/nonexistent/t.csv: No such file"},
      {"replay --backend sim --limit 1.03y " + good, "'1.03y'"},
      {"replay --backend sim --chunk-size 3Q " + good, "'3Q'"},
      {"replay --backend sim --repeat 0 " + good, "--repeat"},
      {"replay --backend sim --scale 0 " + good, "--scale"},
      {"replay --backend sim " + good + " " + bad, bad + ":3: free of id 12 that is not live"}};
  for (const wrong& w : all) {
    const outcome o = run(folder_, w.arguments);
    EXPECT_EQ(o.status, 2) << w.arguments << "\n" << o.err;
    EXPECT_EQ(o.out, "") << w.arguments;
    EXPECT_THAT(o.err, HasSubstr(w.named)) << w.arguments;
    expect_one_line(o);
  }
}

TEST_F(program, bad_variables_are_named) {
  const outcome value = run(folder_, "info --config", "WEIR_THREAD_CACHE=lots");
  EXPECT_EQ(value.status, 2);
  EXPECT_THAT(value.err, HasSubstr("WEIR_THREAD_CACHE"));
  expect_one_line(value);
}

TEST_F(program, info_tells_of_simulated_devices) {
  const outcome o = run(folder_, "info --backend sim --json", "WEIR_SIMULATED_DEVICES=3");
  ASSERT_EQ(o.status, 0) << o.err;
  const json info = json::parse(o.out);
  EXPECT_EQ(info.at("backend"), "sim");
  EXPECT_EQ(info.at("simulated"), true);
  ASSERT_EQ(info.at("devices").size(), 3U);
  const json& device = info.at("devices").at(1);
  EXPECT_EQ(device.at("index"), 1);
  EXPECT_EQ(device.at("memory"), std::uint64_t{4} << 30);
  EXPECT_GT(device.at("memory_free"), std::uint64_t{3} << 30);
  for (const char* key :
       {"name", "uuid", "pci_address", "numa_node", "memory_free", "granularity", "vmm", "simulated"}) {
    EXPECT_TRUE(device.contains(key)) << key;
  }
  const outcome text = run(folder_, "info --backend sim");
  EXPECT_EQ(text.status, 0);
  EXPECT_THAT(text.out, HasSubstr("(simulated)"));
}

TEST_F(program, info_config_shows_effective_values) {
  const outcome o = run(folder_, "info --config --json --backend sim", "WEIR_THREAD_CACHE=64M");
  ASSERT_EQ(o.status, 0) << o.err;
  bool found = false;
  bool backend = false;
  const json parsed = json::parse(o.out);
  for (const json& option : parsed.at("config")) {
    EXPECT_NE(option.at("description"), "") << option;
    found = found || (option.at("name") == "thread_cache" && option.at("variable") == "WEIR_THREAD_CACHE" &&
                      option.at("value").get<std::string>().starts_with("64"));
    backend = backend || (option.at("name") == "driver" && option.at("value") == "sim");
  }
  EXPECT_TRUE(found) << o.out;
  EXPECT_TRUE(backend) << o.out;
  const outcome text = run(folder_, "info --config");
  EXPECT_EQ(text.status, 0);
  EXPECT_THAT(text.out, HasSubstr("WEIR_THREAD_CACHE"));
}

class stress_runs : public program, public testing::WithParamInterface<std::string> {};

TEST_P(stress_runs, are_clean) {
  const outcome o =
      run(folder_, "stress --backend sim --json --devices 2 --threads 3 --seconds 0.5 --seed 11 " + GetParam());
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(o.err, "");
  const json result = json::parse(o.out);
  for (const char* key : {"devices", "threads", "seconds", "pairs", "pairs_per_second", "p50_ns", "p99_ns", "p999_ns",
                          "max_ns", "peak_live", "peak_reserved", "faults"}) {
    EXPECT_TRUE(result.at(key).is_number()) << key;
  }
  EXPECT_EQ(result.at("devices"), 2);
  EXPECT_EQ(result.at("threads"), 3);
  EXPECT_EQ(result.at("faults"), 0);
  EXPECT_GT(result.at("pairs"), 0);
  EXPECT_GT(result.at("stamped"), 0);
  EXPECT_GE(result.at("seconds"), 0.5);
  EXPECT_LE(result.at("p50_ns"), result.at("p99_ns"));
  EXPECT_LE(result.at("p99_ns"), result.at("max_ns"));
  EXPECT_GE(result.at("peak_reserved"), result.at("peak_live"));
}

INSTANTIATE_TEST_SUITE_P(patterns, stress_runs,
                         testing::Values("--pattern mixed --streams own", "--pattern mixed --streams shared",
                                         "--pattern pair --streams own", "--pattern pair --streams shared",
                                         "--pattern handoff --streams own", "--pattern handoff --streams shared",
                                         "--pattern mixed --memory 64M --max 2M", "--min 1 --max 4K --check 3",
                                         "--pattern handoff --min 1M --max 8M"));

TEST_F(program, stress_text) {
  const outcome o = run(folder_, "stress --backend sim --devices 1 --threads 1 --seconds 0.2");
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_THAT(o.out, HasSubstr("pairs per second"));
  EXPECT_EQ(o.err, "");
}

void expect_replay_keys(const json& run) {
  for (const char* key : {"events", "peak_requested", "peak_reserved", "ratio", "ns_per_event", "driver_seconds",
                          "metadata_bytes", "faults"}) {
    EXPECT_TRUE(run.at(key).is_number()) << key;
  }
  EXPECT_TRUE(run.at("trace").is_string());
  EXPECT_TRUE(run.at("driver_calls").is_object());
}

TEST_F(program, replay_reports_every_run) {
  const std::string path = folder_.write_gzip("t.csv.gz", good_trace);
  const outcome o = run(folder_, "replay --backend sim --json --repeat 3 " + path + " " + path);
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(o.err, "");
  const json all = json::parse(o.out);
  ASSERT_TRUE(all.is_array());
  ASSERT_EQ(all.size(), 2U);
  for (const json& one : all) {
    expect_replay_keys(one);
    EXPECT_EQ(one.at("trace"), path);
    EXPECT_EQ(one.at("events"), 5);
    EXPECT_EQ(one.at("peak_requested"), 4001300);
    EXPECT_GE(one.at("peak_reserved"), one.at("peak_requested"));
    EXPECT_EQ(one.at("faults"), 0);
    EXPECT_GT(one.at("metadata_bytes"), 0);
    EXPECT_GT(one.at("driver_calls").at("cuMemCreate"), 0);
    EXPECT_GT(one.at("driver_seconds"), 0.0);
    ASSERT_EQ(one.at("runs").size(), 3U);
    for (const json& r : one.at("runs")) expect_replay_keys(r);
    // The same again needs no new memory.
    EXPECT_FALSE(one.at("runs").at(2).at("driver_calls").contains("cuMemCreate"));
  }
}

TEST_F(program, replay_of_copies_and_scaled) {
  const std::string path = folder_.write("t.csv", good_trace);
  const outcome o = run(folder_, "replay --backend sim --json --copies 3 --scale 2 --touch --repeat 2 " + path);
  ASSERT_EQ(o.status, 0) << o.err;
  const json one = json::parse(o.out).at(0);
  EXPECT_EQ(one.at("events"), 15);
  EXPECT_EQ(one.at("peak_requested"), 3 * (1000 + 8000000 + 300));
  EXPECT_EQ(one.at("faults"), 0);
}

TEST_F(program, replay_reads_the_log_of_rmm) {
  const std::string path = folder_.write("rmm.csv",
                                         "Thread,Time,Action,Pointer,Size,Stream\n"
                                         "1,0:0:0.1,allocate,0x7f00,3000000,0x0\n"
                                         "1,0:0:0.2,free,0x7f00,3000000,0x0\n");
  const outcome o = run(folder_, "replay --backend sim --json --touch " + path);
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(json::parse(o.out).at(0).at("peak_requested"), 3000000);
}

TEST_F(program, replay_over_its_limit_is_a_fault_that_names_the_event) {
  const std::string path = folder_.write("t.csv", "op,id,bytes,stream\na,1,30000000,0\na,2,30000000,0\n");
  const outcome o = run(folder_, "replay --backend sim --json --limit 0.7x " + path, "WEIR_OOM_WAIT=10");
  EXPECT_EQ(o.status, 1);
  expect_one_line(o);
  EXPECT_THAT(o.err, HasSubstr(path + ":3: "));
  EXPECT_EQ(json::parse(o.out).at(0).at("faults"), 1);
}

TEST_F(program, replays_a_recorded_trace_without_fault) {
  const std::string path = std::string(WEIR_SOURCE_DIR) + "/tests/traces/gnn.csv.gz";
  const outcome o = run(folder_, "replay --backend sim --json --repeat 2 " + path);
  ASSERT_EQ(o.status, 0) << o.err;
  const json one = json::parse(o.out).at(0);
  EXPECT_EQ(one.at("events"), 2214);
  EXPECT_EQ(one.at("peak_requested"), 5469339112);
  EXPECT_GE(one.at("ratio"), 1.0);
  EXPECT_EQ(one.at("runs").at(0).at("peak_requested"), one.at("peak_requested"));
  const outcome text = run(folder_, "replay --backend sim " + path);
  EXPECT_EQ(text.status, 0);
  EXPECT_THAT(text.out, HasSubstr("gnn.csv.gz"));
  EXPECT_EQ(text.err, "") << "no bar where stderr is no terminal";
}

}  // namespace
}  // namespace weir::cli
