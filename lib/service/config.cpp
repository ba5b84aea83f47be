// The table of options, and all that is done with it.

#include "weir/config.hpp"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <numeric>
#include <string_view>
#include <variant>

#include "weir/error.hpp"

#include "service/option_values.hpp"

namespace weir {

namespace {

using field = std::variant<std::uint64_t config::*, int config::*, bool config::*, std::chrono::milliseconds config::*,
                           backend config::*, log_level config::*>;

struct row {
  std::string_view name;  // of the field
  std::string_view variable;
  field where;
  std::string_view description;
};

#define WEIR_OPTION(name, variable, description) \
  row { #name, variable, &config::name, description }

// One line an option. A field that is not here cannot be set from outside; the test of the table counts them.
constexpr row table[] = {
    WEIR_OPTION(driver, "WEIR_DRIVER", "whose devices: auto (cuda where a device is found), cuda or sim"),
    WEIR_OPTION(simulated_devices, "WEIR_SIMULATED_DEVICES", "devices of a simulated machine, 1 to 64"),
    WEIR_OPTION(simulated_memory, "WEIR_SIMULATED_MEMORY", "memory of each simulated device"),
    WEIR_OPTION(limit, "WEIR_LIMIT", "most physical memory held on each device; 0: the device's own"),
    WEIR_OPTION(chunk_size, "WEIR_CHUNK_SIZE", "size of a physical handle, a multiple of 2M; 0: chosen by need"),
    WEIR_OPTION(piece_size, "WEIR_PIECE_SIZE", "addresses reserved at a time for a lane; 0: the device's memory"),
    WEIR_OPTION(thread_cache, "WEIR_THREAD_CACHE", "most bytes that one thread caches over all lanes"),
    WEIR_OPTION(lane_cache, "WEIR_LANE_CACHE", "most bytes in the bins of one lane"),
    WEIR_OPTION(growth_patience, "WEIR_GROWTH_PATIENCE", "wait for the maintenance path before going on without it"),
    WEIR_OPTION(oom_wait, "WEIR_OOM_WAIT", "longest wait for pending frees before a request fails"),
    WEIR_OPTION(idle_after, "WEIR_IDLE_AFTER", "a thread cache not used for so long may be drained"),
    WEIR_OPTION(maintenance, "WEIR_MAINTENANCE", "a background thread retires pending frees and drains idle caches"),
    WEIR_OPTION(hardened, "WEIR_HARDENED", "tell two threads that free one block at the same instant apart"),
    WEIR_OPTION(context_fence, "WEIR_CONTEXT_FENCE", "fence vanished streams' memory by context events under pressure"),
    WEIR_OPTION(log, "WEIR_LOG", "what reaches stderr: off, error, warning, info or debug"),
};

#undef WEIR_OPTION

[[noreturn]] void refuse(const std::string& text) { throw error(errc::invalid_argument, text); }

const row* find_name(std::string_view name) {
  const auto* at = std::ranges::find(table, name, &row::name);
  return at == std::end(table) ? nullptr : at;
}

const row* find_variable(std::string_view variable) {
  const auto* at = std::ranges::find(table, variable, &row::variable);
  return at == std::end(table) ? nullptr : at;
}

// `named`: how the caller spelled the option.
void assign(config& c, const row& r, std::string_view named, std::string_view value) {
  std::visit(
      [&](auto member) {
        if (service_detail::read(value, c.*member)) return;
        refuse(std::string(named) + "=" + std::string(value) + ": not allowed; it takes " +
               std::string(service_detail::allowed(c.*member)));
      },
      r.where);
}

// Single-character changes from one word to the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> line(b.size() + 1);
  std::iota(line.begin(), line.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = line[0];
    line[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t above = line[j + 1];
      line[j + 1] = std::min({above + 1, line[j] + 1, diagonal + (a[i] == b[j] ? 0 : 1)});
      diagonal = above;
    }
  }
  return line.back();
}

// " (did you mean ...?)", or nothing if no word of the column is near.
std::string suggestion(std::string_view word, std::string_view row::*column) {
  const row* nearest = std::ranges::min_element(table, {}, [&](const row& r) { return distance(word, r.*column); });
  const std::string_view found = nearest->*column;
  return distance(word, found) > 3 ? std::string() : " (did you mean " + std::string(found) + "?)";
}

// Variables that belong to the benchmarks and tests.
bool elsewhere(std::string_view variable) {
  return variable.starts_with("WEIR_BENCH_") || variable.starts_with("WEIR_TEST_");
}

void must(bool holds, std::string_view name, const std::string& value, std::string_view why) {
  if (!holds) refuse(std::string(name) + "=" + value + ": " + std::string(why));
}

}  // namespace

config config::from_environment() {
  config c;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string_view entry(*at);
    const std::size_t equals = entry.find('=');
    if (!entry.starts_with("WEIR_") || equals == std::string_view::npos) continue;
    const std::string_view variable = entry.substr(0, equals);
    const std::string_view value = entry.substr(equals + 1);
    if (const row* r = find_variable(variable); r != nullptr) {
      assign(c, *r, variable, value);
    } else if (!elsewhere(variable)) {
      refuse(std::string(entry) + ": Weir has no such variable" + suggestion(variable, &row::variable));
    }
  }
  c.check();
  return c;
}

void config::set(const std::string& name, const std::string& value) {
  const row* r = find_name(name);
  if (r == nullptr) refuse(name + "=" + value + ": Weir has no such option" + suggestion(name, &row::name));
  assign(*this, *r, name, value);
}

void config::check() const {
  using service_detail::print;
  constexpr std::uint64_t handle = std::uint64_t{2} << 20;  // sizes of physical handles are multiples of it
  constexpr std::uint64_t most_addresses = std::uint64_t{1} << 40;
  must(driver <= backend::simulated, "driver", print(driver), "no value of weir::backend");
  must(log <= log_level::debug, "log", print(log), "no value of weir::log_level");
  must(simulated_devices >= 1 && simulated_devices <= 64, "simulated_devices", print(simulated_devices),
       "must be 1 to 64");
  must(simulated_memory >= handle, "simulated_memory", print(simulated_memory), "must be at least 2M");
  must(limit == 0 || limit >= handle, "limit", print(limit), "must be 0 or at least 2M, the smallest physical handle");
  must(chunk_size % handle == 0, "chunk_size", print(chunk_size), "must be a multiple of 2M");
  must(limit == 0 || chunk_size <= limit, "chunk_size", print(chunk_size), "must not be above limit=" + print(limit));
  must(piece_size <= most_addresses, "piece_size", print(piece_size), "must be at most 1T, all addresses of a lane");
  must(piece_size == 0 || chunk_size < piece_size, "chunk_size", print(chunk_size),
       "must be below piece_size=" + print(piece_size));
  must(growth_patience.count() >= 0, "growth_patience", print(growth_patience), "must not be negative");
  must(oom_wait.count() >= 0, "oom_wait", print(oom_wait), "must not be negative");
  must(idle_after.count() >= 0, "idle_after", print(idle_after), "must not be negative");
}

std::vector<config::option> config::options() const {
  std::vector<option> all;
  for (const row& r : table) {
    std::visit(
        [&](auto member) {
          all.push_back({std::string(r.name), std::string(r.variable), service_detail::print(this->*member),
                         std::string(r.description)});
        },
        r.where);
  }
  return all;
}

}  // namespace weir
