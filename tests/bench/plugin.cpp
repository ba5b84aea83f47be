// A peer that counts what it is asked, for testing how weir_bench finds and calls plugins.

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include "peers/peer.h"

namespace {

std::atomic<long> live{0};
std::atomic<int> threads{0};

const char* init() {
  // What it saw is printed when the program ends.
  std::atexit([] { std::printf("plugin: %ld live, %d threads\n", live.load(), threads.load()); });
  return nullptr;
}
void* allocate(std::size_t bytes, void* stream) {
  if (stream == nullptr || bytes == 0) std::abort();
  ++live;
  return std::malloc(bytes);
}
void deallocate(void* block, std::size_t bytes, void* stream) {
  if (block == nullptr || stream == nullptr || bytes == 0) std::abort();
  --live;
  std::free(block);
}
void thread_init() { ++threads; }

constexpr weir_bench_peer table{WEIR_BENCH_PEER_VERSION, 0, "counting", init, allocate, deallocate, thread_init};

}  // namespace

extern "C" const weir_bench_peer* weir_bench_get_peer() { return &table; }
