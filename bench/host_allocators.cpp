// glibc, mimalloc, jemalloc and tcmalloc. The last three are opened beside glibc, under their own names: none of them
// replaces malloc of this process, and none is required. And `none`, which shows what the harness itself takes.

#include <dlfcn.h>

#include <cstddef>
#include <cstdlib>

#include "environment.hpp"

namespace weir::bench {
namespace {

alignas(64) std::byte nowhere[64];
void* none_allocate(std::size_t, void*) { return nowhere; }
void none_deallocate(void*, std::size_t, void*) {}

void* glibc_allocate(std::size_t bytes, void*) { return std::malloc(bytes); }
void glibc_deallocate(void* block, std::size_t, void*) { std::free(block); }

void* (*mi_malloc_)(std::size_t);
void (*mi_free_)(void*);
void* mi_allocate(std::size_t bytes, void*) { return mi_malloc_(bytes); }
void mi_deallocate(void* block, std::size_t, void*) { mi_free_(block); }

void* (*tc_malloc_)(std::size_t);
void (*tc_free_)(void*);
void* tc_allocate(std::size_t bytes, void*) { return tc_malloc_(bytes); }
void tc_deallocate(void* block, std::size_t, void*) { tc_free_(block); }

// Debian's jemalloc has no prefix; its malloc would do, but the names that only jemalloc has leave no doubt.
void* (*je_mallocx_)(std::size_t, int);
void (*je_dallocx_)(void*, int);
void* je_allocate(std::size_t bytes, void*) { return je_mallocx_(bytes, 0); }
void je_deallocate(void* block, std::size_t, void*) { je_dallocx_(block, 0); }

template <class Allocate, class Deallocate>
bool open(environment& env, const char* library, const char* allocate_name, Allocate& allocate,
          const char* deallocate_name, Deallocate& deallocate) {
  void* handle = env.open_library(library);
  if (handle == nullptr) return false;
  allocate = reinterpret_cast<Allocate>(::dlsym(handle, allocate_name));
  deallocate = reinterpret_cast<Deallocate>(::dlsym(handle, deallocate_name));
  if (allocate != nullptr && deallocate != nullptr) return true;
  env.note(std::string(library) + " has no " + allocate_name + " and " + deallocate_name);
  return false;
}

void add(environment& env, const char* name, void* (*allocate)(std::size_t, void*),
         void (*deallocate)(void*, std::size_t, void*)) {
  allocator a;
  a.name = name;
  a.allocate = allocate;
  a.deallocate = deallocate;
  env.allocators.push_back(std::move(a));
}

}  // namespace

void add_host_allocators(environment& env) {
  if (open(env, "libmimalloc.so.2", "mi_malloc", mi_malloc_, "mi_free", mi_free_)) {
    add(env, "mimalloc", mi_allocate, mi_deallocate);
  }
  if (open(env, "libjemalloc.so.2", "mallocx", je_mallocx_, "dallocx", je_dallocx_)) {
    add(env, "jemalloc", je_allocate, je_deallocate);
  }
  if (open(env, "libtcmalloc_minimal.so.4", "tc_malloc", tc_malloc_, "tc_free", tc_free_)) {
    add(env, "tcmalloc", tc_allocate, tc_deallocate);
  }
  add(env, "glibc", glibc_allocate, glibc_deallocate);
  add(env, "none", none_allocate, none_deallocate);
}

}  // namespace weir::bench
