#pragma once
// The allocators that this machine has, and the streams they work on.

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "weir/types.hpp"

#include "allocator.hpp"

namespace weir {
class service;
}

namespace weir::bench {

struct options {
  std::vector<std::string> peer_folders;  // searched for plugins and for the host allocators' libraries
  std::string cudart;                     // path of libcudart, empty: search
  bool reverse = false;                   // allocators in reverse order, for alternating runs
};

class stream_source;

class environment {
 public:
  explicit environment(options o);
  ~environment();

  // Device 0's index-th stream of this program; simulated where Weir runs on the simulated driver.
  [[nodiscard]] weir::stream_t stream(std::size_t index);
  [[nodiscard]] bool gpu() const noexcept;
  void enter_device() const;
  [[nodiscard]] weir::service& service() noexcept { return *service_; }
  // One more over the same device, that nobody else works in.
  [[nodiscard]] std::unique_ptr<weir::service> another_service() const;
  [[nodiscard]] const options& given() const noexcept { return options_; }

  // dlopen in the peers' folders, then where the loader looks. Null, and a note, when there is none.
  void* open_library(const std::string& name);
  // Why something is missing: printed by --peers-verbose, never an error.
  void note(const std::string& text);

  std::vector<std::string> notes;

 private:
  options options_;
  std::unique_ptr<stream_source> streams_;
  std::unique_ptr<weir::service> service_;

 public:
  // Last, so that the lanes in it go before their service.
  std::vector<allocator> allocators;
};

void add_weir_allocators(environment& env);
void add_host_allocators(environment& env);
void add_cuda_allocators(environment& env);
void add_plugins(environment& env);

}  // namespace weir::bench
