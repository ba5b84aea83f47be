// weir_bench: Weir and its peers side by side. Options of Google Benchmark, and those below.

#include <benchmark/benchmark.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <thread>

#include "weir/service.hpp"
#include "weir/version.hpp"

#include "environment.hpp"
#include "workloads.hpp"

namespace {

constexpr const char* usage =
    "weir_bench: Weir beside other allocators (names: bench/README.md)\n"
    "  --peers=DIR       folder of peers: weir_bench_*.so and the host allocators' libraries; may be given again\n"
    "                    (environment: WEIR_BENCH_PEERS, folders separated by ':')\n"
    "  --cudart=PATH     the CUDA runtime for cudaMalloc and cudaMallocAsync\n"
    "  --reverse         allocators in reverse order, for alternating runs\n"
    "  --peers_verbose   say which peers are missing, and why\n"
    "and Google Benchmark's own: --benchmark_filter=REGEX, --benchmark_min_time=SECONDS, --benchmark_out=FILE, ...\n";

void add_folders(weir::bench::options& o, std::string_view list) {
  while (!list.empty()) {
    const std::size_t colon = list.find(':');
    if (colon != 0) o.peer_folders.emplace_back(list.substr(0, colon));
    list = colon == std::string_view::npos ? std::string_view{} : list.substr(colon + 1);
  }
}

// jemalloc wants 2.6 KiB of static thread-local storage, more than the loader keeps for libraries opened later. The
// loader reads its limit when a process starts: so start again, once, with a larger one.
void ensure_static_tls(char** argv) {
  constexpr const char* wanted = "glibc.rtld.optional_static_tls=16384";
  const char* tunables = std::getenv("GLIBC_TUNABLES");
  if (tunables != nullptr && std::strstr(tunables, "optional_static_tls") != nullptr) return;
  const std::string all = tunables == nullptr ? wanted : std::string(tunables) + ":" + wanted;
  ::setenv("GLIBC_TUNABLES", all.c_str(), 1);
  ::execv("/proc/self/exe", argv);
  // Without /proc only jemalloc is missing; --peers_verbose says so.
}

int run(int argc, char** argv) {
  weir::bench::options o;
  bool verbose = false;
  benchmark::Initialize(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--help") return std::fputs(usage, stdout), 0;
    if (argument == "--reverse") {
      o.reverse = true;
    } else if (argument == "--peers_verbose") {
      verbose = true;
    } else if (argument.starts_with("--peers=")) {
      add_folders(o, argument.substr(8));
    } else if (argument.starts_with("--cudart=")) {
      o.cudart = argument.substr(9);
    } else {
      std::fprintf(stderr, "weir_bench: unknown option '%s'\n%s", argv[i], usage);
      return 2;
    }
  }
  if (const char* folders = std::getenv("WEIR_BENCH_PEERS")) add_folders(o, folders);

  weir::bench::environment env(o);
  if (verbose) {
    for (const std::string& note : env.notes) std::fprintf(stderr, "note: %s\n", note.c_str());
  }
  benchmark::AddCustomContext("weir_version", weir::version());
  benchmark::AddCustomContext("weir_device", env.service().info(0).name);
  benchmark::AddCustomContext("weir_backend", env.gpu() ? "cuda" : "simulated");
  weir::bench::register_pair(env);
  weir::bench::register_mixed(env);
  weir::bench::register_shared_stream(env);
  weir::bench::register_handoff(env);
  weir::bench::register_batch(env);
  weir::bench::register_metadata(env);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  ensure_static_tls(argv);
  try {
    return run(argc, argv);
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "weir_bench: %s\n", fault.what());
    return 2;
  }
}
