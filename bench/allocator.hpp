#pragma once
// What every workload sees of an allocator: two function pointers and a context, the same indirection for all of them.

#include <cstddef>
#include <functional>
#include <string>

namespace weir::bench {

struct allocator {
  std::string name;  // as it stands in the benchmarks' names

  // The hot calls. `context` comes from `context_of`: a lane, a stream, or null for host allocators.
  void* (*allocate)(std::size_t bytes, void* context) = nullptr;
  // `bytes` as allocated: all are told, since RMM must be.
  void (*deallocate)(void* block, std::size_t bytes, void* context) = nullptr;

  // The context of the index-th stream; made when first asked for, kept until the program ends. Main thread only.
  std::function<void*(std::size_t index)> context_of = [](std::size_t) { return nullptr; };

  // Called once on every thread that will use the allocator; may be null.
  void (*thread_init)() = nullptr;
};

}  // namespace weir::bench
