#include "weir/config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "weir/error.hpp"

namespace weir {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// The text of the error that `f` throws; fails the test if it throws none, or of another kind.
std::string refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::invalid_argument);
    EXPECT_THAT(e.what(), Not(HasSubstr("\n")));
    return e.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

std::string refused(const std::string& name, const std::string& value) {
  config c;
  return refusal([&] { c.set(name, value); });
}

std::string value_of(const config& c, const std::string& name) {
  for (const config::option& o : c.options()) {
    if (o.name == name) return o.value;
  }
  return "no such option";
}

// The process's environment without Weir's variables, and as it was afterwards.
class environment : public testing::Test {
 protected:
  environment() {
    std::vector<std::string> ours;
    for (char** at = environ; *at != nullptr; ++at) {
      const std::string entry(*at);
      if (entry.rfind("WEIR_", 0) == 0) ours.push_back(entry);
    }
    for (const std::string& entry : ours) {
      const auto equals = entry.find('=');
      before_[entry.substr(0, equals)] = entry.substr(equals + 1);
      unsetenv(entry.substr(0, equals).c_str());
    }
  }
  ~environment() override {
    for (const auto& name : set_) unsetenv(name.c_str());
    for (const auto& [name, value] : before_) setenv(name.c_str(), value.c_str(), 1);
  }
  void put(const std::string& name, const std::string& value) {
    setenv(name.c_str(), value.c_str(), 1);
    set_.push_back(name);
  }

 private:
  std::map<std::string, std::string> before_;
  std::vector<std::string> set_;
};

TEST(config, every_field_is_an_option) {
  // A field more, and this no longer compiles: it then needs a line in the table and here.
  const auto& [driver, devices, memory, limit, chunk, piece, thread, lane, patience, wait, idle, maintenance, hardened,
               fence, log] = config{};
  constexpr std::size_t fields = 15;
  const auto options = config{}.options();
  ASSERT_EQ(options.size(), fields);
  for (const config::option& o : options) {
    std::string expected = "WEIR_" + o.name;
    for (char& c : expected) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    EXPECT_EQ(o.variable, expected);
    EXPECT_FALSE(o.description.empty()) << o.name;
    EXPECT_THAT(o.description, Not(HasSubstr("\n")));
  }
  static_cast<void>(driver), static_cast<void>(devices), static_cast<void>(memory), static_cast<void>(limit),
      static_cast<void>(chunk), static_cast<void>(piece), static_cast<void>(thread), static_cast<void>(lane),
      static_cast<void>(patience), static_cast<void>(wait), static_cast<void>(idle), static_cast<void>(maintenance),
      static_cast<void>(hardened), static_cast<void>(fence), static_cast<void>(log);
}

TEST(config, values_are_printed_as_set_takes_them) {
  config c;
  c.set("thread_cache", "1000");
  c.set("limit", "3G");
  c.set("oom_wait", "0");
  c.set("driver", "sim");
  c.set("log", "debug");
  c.set("hardened", "yes");
  config d;
  for (const config::option& o : c.options()) d.set(o.name, o.value);
  for (const config::option& o : c.options()) EXPECT_EQ(value_of(d, o.name), o.value) << o.name;
  EXPECT_EQ(d.thread_cache, 1000u);
  EXPECT_EQ(d.oom_wait.count(), 0);
  EXPECT_EQ(value_of(d, "limit"), "3G");
  EXPECT_EQ(value_of(d, "driver"), "sim");
}

TEST(config, sizes) {
  config c;
  const std::pair<const char*, std::uint64_t> good[] = {{"0", 0},
                                                        {"4096", 4096},
                                                        {"4096B", 4096},
                                                        {"64K", 64u << 10},
                                                        {"64k", 64u << 10},
                                                        {"64KiB", 64u << 10},
                                                        {"64 KB", 64u << 10},
                                                        {"16M", 16u << 20},
                                                        {"16mib", 16u << 20},
                                                        {"2G", std::uint64_t{2} << 30},
                                                        {"1TiB", std::uint64_t{1} << 40},
                                                        {"18446744073709551615", ~std::uint64_t{0}},
                                                        {"16777215T", std::uint64_t{16777215} << 40}};
  for (const auto& [text, bytes] : good) {
    c.set("thread_cache", text);
    EXPECT_EQ(c.thread_cache, bytes) << text;
  }
  for (const char* text : {"", "K", "-1", "+1", "1.5G", "1X", "1KK", "1Ki", "0x10", " 1", "1 ", "1  K", "1 Kelvin",
                           "18446744073709551616", "16777216T"}) {
    EXPECT_THAT(refused("thread_cache", text),
                AllOf(HasSubstr("thread_cache=" + std::string(text)), HasSubstr("a number of bytes")))
        << text;
  }
}

TEST(config, a_refused_value_changes_nothing) {
  config c;
  c.set("thread_cache", "5M");
  EXPECT_THROW(c.set("thread_cache", "5Q"), error);
  EXPECT_EQ(c.thread_cache, 5u << 20);
}

TEST(config, times) {
  config c;
  const std::pair<const char*, std::int64_t> good[] = {
      {"0", 0}, {"250", 250}, {"250ms", 250}, {"2s", 2000}, {"2 S", 2000}};
  for (const auto& [text, ms] : good) {
    c.set("oom_wait", text);
    EXPECT_EQ(c.oom_wait.count(), ms) << text;
  }
  for (const char* text : {"", "-5", "1m", "1h", "5us", "s", "99999999999999999999", "9223372036854775807s"}) {
    EXPECT_THAT(refused("oom_wait", text), HasSubstr("a time, as 250, 250ms or 2s")) << text;
  }
}

TEST(config, truth_values) {
  config c;
  for (const char* text : {"1", "true", "on", "yes", "ON", "True"}) {
    c.hardened = false;
    c.set("hardened", text);
    EXPECT_TRUE(c.hardened) << text;
  }
  for (const char* text : {"0", "false", "off", "no", "NO"}) {
    c.hardened = true;
    c.set("hardened", text);
    EXPECT_FALSE(c.hardened) << text;
  }
  EXPECT_THAT(refused("hardened", "2"), AllOf(HasSubstr("hardened=2"), HasSubstr("on, off, 1, 0")));
}

TEST(config, names) {
  config c;
  c.set("driver", "cuda");
  EXPECT_EQ(c.driver, backend::cuda);
  c.set("driver", "AUTO");
  EXPECT_EQ(c.driver, backend::automatic);
  c.set("log", "off");
  EXPECT_EQ(c.log, log_level::off);
  EXPECT_THAT(refused("driver", "rocm"), AllOf(HasSubstr("driver=rocm"), HasSubstr("auto, cuda or sim")));
  EXPECT_THAT(refused("log", "loud"), AllOf(HasSubstr("log=loud"), HasSubstr("warning")));
}

TEST(config, whole_numbers) {
  config c;
  c.set("simulated_devices", "8");
  EXPECT_EQ(c.simulated_devices, 8);
  for (const char* text : {"", "eight", "8K", "-1", "2147483648"}) {
    EXPECT_THAT(refused("simulated_devices", text), HasSubstr("a whole number")) << text;
  }
}

TEST(config, an_unknown_option_is_named_with_the_nearest) {
  EXPECT_THAT(refused("thread_cach", "1M"),
              AllOf(HasSubstr("thread_cach=1M"), HasSubstr("did you mean thread_cache?")));
  EXPECT_THAT(refused("colour", "red"), AllOf(HasSubstr("colour=red"), Not(HasSubstr("did you mean"))));
}

TEST(config, fields_are_checked_against_each_other) {
  const auto complaint = [](const std::function<void(config&)>& change) {
    config c;
    change(c);
    return refusal([&] { c.check(); });
  };
  EXPECT_NO_THROW(config{}.check());
  EXPECT_THAT(complaint([](config& c) { c.simulated_devices = 0; }), HasSubstr("simulated_devices=0"));
  EXPECT_THAT(complaint([](config& c) { c.simulated_devices = 65; }), HasSubstr("simulated_devices=65"));
  EXPECT_THAT(complaint([](config& c) { c.simulated_memory = 1; }), HasSubstr("simulated_memory=1"));
  EXPECT_THAT(complaint([](config& c) { c.limit = 4096; }), HasSubstr("limit=4K"));
  EXPECT_THAT(complaint([](config& c) { c.chunk_size = 3u << 20; }), HasSubstr("chunk_size=3M"));
  EXPECT_THAT(complaint([](config& c) {
                c.chunk_size = 8u << 20;
                c.limit = 4u << 20;
              }),
              AllOf(HasSubstr("chunk_size=8M"), HasSubstr("limit=4M")));
  EXPECT_THAT(complaint([](config& c) {
                c.chunk_size = 8u << 20;
                c.piece_size = 4u << 20;
              }),
              AllOf(HasSubstr("chunk_size=8M"), HasSubstr("piece_size=4M")));
  EXPECT_THAT(complaint([](config& c) { c.piece_size = std::uint64_t{2} << 40; }), HasSubstr("piece_size=2T"));
  EXPECT_THAT(complaint([](config& c) { c.oom_wait = std::chrono::milliseconds(-1); }), HasSubstr("oom_wait=-1ms"));
  EXPECT_THAT(complaint([](config& c) { c.growth_patience = std::chrono::milliseconds(-2); }),
              HasSubstr("growth_patience=-2ms"));
  EXPECT_THAT(complaint([](config& c) { c.idle_after = std::chrono::milliseconds(-3); }), HasSubstr("idle_after=-3ms"));
  EXPECT_THAT(complaint([](config& c) { c.driver = static_cast<backend>(9); }), HasSubstr("driver=9"));
  EXPECT_THAT(complaint([](config& c) { c.log = static_cast<log_level>(9); }), HasSubstr("log=9"));
}

TEST_F(environment, nothing_set_gives_the_defaults) {
  const config c = config::from_environment();
  for (const config::option& o : config{}.options()) EXPECT_EQ(value_of(c, o.name), o.value) << o.name;
}

TEST_F(environment, every_variable_reaches_its_field) {
  const std::map<std::string, std::string> values = {
      {"driver", "sim"},      {"simulated_devices", "3"}, {"simulated_memory", "6G"},
      {"limit", "1G"},        {"chunk_size", "4M"},       {"piece_size", "8G"},
      {"thread_cache", "1M"}, {"lane_cache", "2M"},       {"growth_patience", "7ms"},
      {"oom_wait", "8ms"},    {"idle_after", "9ms"},      {"maintenance", "off"},
      {"hardened", "on"},     {"context_fence", "off"},   {"log", "error"}};
  for (const config::option& o : config{}.options()) {
    ASSERT_TRUE(values.contains(o.name)) << o.name;
    ASSERT_NE(values.at(o.name), o.value) << o.name << ": the test must set another value than the default";
    put(o.variable, values.at(o.name));
  }
  const config c = config::from_environment();
  for (const auto& [name, value] : values) EXPECT_EQ(value_of(c, name), value) << name;
}

TEST_F(environment, a_bad_value_names_the_variable) {
  put("WEIR_LANE_CACHE", "lots");
  EXPECT_THAT(refusal([] { config::from_environment(); }), AllOf(HasSubstr("WEIR_LANE_CACHE=lots"), HasSubstr("64K")));
}

TEST_F(environment, an_unknown_variable_is_named) {
  put("WEIR_THREAD_CASH", "1M");
  EXPECT_THAT(refusal([] { config::from_environment(); }),
              AllOf(HasSubstr("WEIR_THREAD_CASH=1M"), HasSubstr("WEIR_THREAD_CACHE?")));
}

TEST_F(environment, variables_of_benchmarks_and_tests_are_left_alone) {
  put("WEIR_BENCH_PEERS", "none");
  put("WEIR_TEST_SEED", "1");
  put("WEIRD", "1");
  EXPECT_NO_THROW(config::from_environment());
}

TEST_F(environment, fields_that_do_not_fit_together_are_refused) {
  put("WEIR_CHUNK_SIZE", "1M");
  EXPECT_THAT(refusal([] { config::from_environment(); }), HasSubstr("chunk_size=1M"));
}

}  // namespace
TEST(config, every_option_is_documented_with_its_default) {
  std::ifstream file(WEIR_SOURCE_DIR "/docs/configuration.md");
  ASSERT_TRUE(file) << "docs/configuration.md is missing";
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  for (const config::option& o : config{}.options()) {
    const std::string row = "| `" + o.name + "` | `" + o.variable + "` | " + o.value + " | " + o.description + " |";
    EXPECT_NE(text.find(row), std::string::npos) << "no such line in docs/configuration.md: " << row;
  }
}

}  // namespace weir
