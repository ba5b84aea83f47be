// Does exactly PAIRS hot pairs of BYTES, for counting instructions with callgrind (tests/instructions/run.sh):
//   weir_fast_path BYTES PAIRS [weir|mimalloc|tcmalloc]
// What is counted lies between the entry and the return of `hot_pairs` or `peer_pairs`: the markers. The loop and the
// calls count too.

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "weir/config.hpp"
#include "weir/lane.hpp"
#include "weir/service.hpp"

// Plain names, so that callgrind's --toggle-collect finds them.
extern "C" {

[[gnu::noinline]] void hot_pairs(weir::lane& lane, std::size_t bytes, std::size_t pairs) {
  for (std::size_t i = 0; i < pairs; ++i) lane.deallocate(lane.allocate(bytes));
}

[[gnu::noinline]] void peer_pairs(void* (*allocate)(std::size_t), void (*deallocate)(void*), std::size_t bytes,
                                  std::size_t pairs) {
  for (std::size_t i = 0; i < pairs; ++i) deallocate(allocate(bytes));
}
}

namespace {

void run_weir(std::size_t bytes, std::size_t pairs) {
  weir::config c;
  c.driver = weir::backend::simulated;
  c.simulated_devices = 1;
  c.simulated_memory = std::uint64_t{1} << 30;
  c.maintenance = false;  // the hot pair alone
  weir::service service(c);
  weir::lane lane = service.lane(0, weir::legacy_stream);
  hot_pairs(lane, bytes, 64);
  hot_pairs(lane, bytes, pairs);
}

int run_peer(const std::string& name, std::size_t bytes, std::size_t pairs) {
  const bool mimalloc = name == "mimalloc";
  const char* library = mimalloc ? "libmimalloc.so.2" : "libtcmalloc_minimal.so.4";
  void* handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    std::fprintf(stderr, "weir_fast_path: %s\n", ::dlerror());
    return 77;
  }
  const auto allocate = reinterpret_cast<void* (*)(std::size_t)>(::dlsym(handle, mimalloc ? "mi_malloc" : "tc_malloc"));
  const auto deallocate = reinterpret_cast<void (*)(void*)>(::dlsym(handle, mimalloc ? "mi_free" : "tc_free"));
  peer_pairs(allocate, deallocate, bytes, 64);
  peer_pairs(allocate, deallocate, bytes, pairs);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string allocator = argc > 3 ? argv[3] : "weir";
  const bool known = allocator == "weir" || allocator == "mimalloc" || allocator == "tcmalloc";
  if (argc < 3 || argc > 4 || !known) {
    std::fprintf(stderr, "usage: weir_fast_path BYTES PAIRS [weir|mimalloc|tcmalloc]\n");
    return 2;
  }
  const std::size_t bytes = std::strtoull(argv[1], nullptr, 10);
  const std::size_t pairs = std::strtoull(argv[2], nullptr, 10);
  try {
    if (allocator != "weir") return run_peer(allocator, bytes, pairs);
    run_weir(bytes, pairs);
    return 0;
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "weir_fast_path: %s\n", fault.what());
    return 1;
  }
}
