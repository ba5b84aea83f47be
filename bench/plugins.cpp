// Peers that need libraries of their own (cub, PyTorch, RMM): shared objects with the table of peers/peer.h.

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "environment.hpp"
#include "peers/peer.h"

namespace weir::bench {
namespace {

void add_plugin(environment& env, const std::string& path) {
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return env.note(::dlerror());
  using entry = const weir_bench_peer* (*)();
  const auto find = reinterpret_cast<entry>(::dlsym(handle, "weir_bench_get_peer"));
  if (find == nullptr) return env.note(path + " exports no weir_bench_get_peer");
  const weir_bench_peer* peer = find();
  if (peer->version != WEIR_BENCH_PEER_VERSION) {
    return env.note(path + " is of version " + std::to_string(peer->version) + " of peer.h, not " +
                    std::to_string(WEIR_BENCH_PEER_VERSION));
  }
  if (peer->needs_gpu != 0 && !env.gpu()) return env.note(std::string(peer->name) + " needs a GPU");
  if (const char* fault = peer->init()) return env.note(std::string(peer->name) + ": " + fault);
  allocator a;
  a.name = peer->name;
  a.allocate = peer->allocate;
  a.deallocate = peer->deallocate;
  a.thread_init = peer->thread_init;
  a.context_of = [&env](std::size_t index) { return static_cast<void*>(env.stream(index)); };
  env.allocators.push_back(std::move(a));
}

}  // namespace

void add_plugins(environment& env) {
  for (const std::string& folder : env.given().peer_folders) {
    std::vector<std::string> paths;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("weir_bench_") && name.ends_with(".so")) paths.push_back(entry.path().string());
    }
    if (error) env.note("cannot list " + folder + ": " + error.message());
    std::sort(paths.begin(), paths.end());
    for (const std::string& path : paths) add_plugin(env, path);
  }
}

}  // namespace weir::bench
