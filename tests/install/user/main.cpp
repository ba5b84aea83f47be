// Allocates on a simulated device through the installed package and looks at what came of it.

#include <cstdio>
#include <string>

#include <weir/weir.hpp>

namespace {

bool expect(bool holds, const char* what) {
  if (!holds) std::fprintf(stderr, "not so: %s\n", what);
  return holds;
}

}  // namespace

int main() {
  weir::config options;
  options.driver = weir::backend::simulated;
  weir::service service(options);
  weir::lane lane = service.lane(0, weir::legacy_stream);

  weir::buffer<float> numbers(lane, 1000);
  weir::block_info block;
  bool good = expect(service.query(numbers.data() + 999, block), "an address inside the block finds it");
  good &= expect(block.bytes >= 1000 * sizeof(float), "the block is as large as was asked");
  good &= expect(service.info(0).simulated, "the device is simulated");
  good &= expect(service.statistics().total().live >= numbers.size_bytes(), "live counts the block");

  numbers.reset();
  good &= expect(!service.query(numbers.data(), block), "no block after the free");
  service.trim();
  good &= expect(service.check().empty(), "the heap's records agree");
  std::printf("weir %s: %s\n", weir::version(), good ? "good" : "faults");
  return good ? 0 : 1;
}
