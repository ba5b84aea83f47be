/* A peer allocator in a shared object of its own: weir_bench runs without it, and links nothing of it.
 *
 * The object exports `const struct weir_bench_peer* weir_bench_get_peer(void)`. It is looked for, as weir_bench_*.so,
 * in the folders that --peers=DIR or WEIR_BENCH_PEERS name. Every function is called with device 0's primary context in
 * use.
 */
#ifndef WEIR_BENCH_PEER_H
#define WEIR_BENCH_PEER_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_BENCH_PEER_VERSION 1

struct weir_bench_peer {
  int version;                                   /* WEIR_BENCH_PEER_VERSION */
  int needs_gpu;                                 /* 1: left out where the streams are simulated */
  const char* name;                              /* as it shall stand in the benchmarks' names */
  const char* (*init)(void);                     /* null, or one line that says why it cannot work */
  void* (*allocate)(size_t bytes, void* stream); /* null when it fails; throws nothing */
  /* In the order of that stream; bytes as allocated. */
  void (*deallocate)(void* block, size_t bytes, void* stream);
  void (*thread_init)(void); /* once on each thread that allocates; may be null */
};

__attribute__((visibility("default"))) const struct weir_bench_peer* weir_bench_get_peer(void);

#ifdef __cplusplus
}
#endif

#endif
