#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

#include "cli/errors.hpp"
#include "cli/stamper.hpp"

namespace weir::cli {
namespace {

// A column of thread blocks an order (x counts orders); their threads go over the words with the stride of the column,
// each over the same words when it writes and when it verifies. PTX, so that neither nvcc nor a runtime library is
// needed: the driver compiles it for the GPU at hand.
constexpr const char* kernel_text = R"(
.version 7.0
.target sm_70
.address_size 64

.visible .entry weir_stamp(.param .u64 orders_param, .param .u64 result_param)
{
  .reg .pred %end, %off, %same;
  .reg .b32 %block32, %thread32, %size32, %row32, %rows32, %first32, %stride32;
  .reg .b64 %orders, %result, %order, %base, %words, %stamp, %todo, %bit;
  .reg .b64 %first, %stride, %i, %address, %want, %got, %block, %one;

  ld.param.u64 %orders, [orders_param];
  ld.param.u64 %result, [result_param];
  mov.u32 %block32, %ctaid.x;
  mov.u32 %thread32, %tid.x;
  mov.u32 %size32, %ntid.x;
  mov.u32 %row32, %ctaid.y;
  mov.u32 %rows32, %nctaid.y;
  mad.lo.u32 %first32, %row32, %size32, %thread32;
  mul.lo.u32 %stride32, %rows32, %size32;
  cvt.u64.u32 %block, %block32;
  cvt.u64.u32 %first, %first32;
  cvt.u64.u32 %stride, %stride32;
  mad.lo.u64 %order, %block, 32, %orders;
  ld.u64 %base, [%order];
  ld.u64 %words, [%order+8];
  ld.u64 %stamp, [%order+16];
  ld.u64 %todo, [%order+24];

  and.b64 %bit, %todo, 1;
  setp.eq.u64 %off, %bit, 0;
  @%off bra verify;
  mov.u64 %i, %first;
write_word:
  setp.ge.u64 %end, %i, %words;
  @%end bra verify;
  mad.lo.u64 %address, %i, 8, %base;
  add.u64 %want, %stamp, %i;
  st.u64 [%address], %want;
  add.u64 %i, %i, %stride;
  bra write_word;

verify:
  and.b64 %bit, %todo, 2;
  setp.eq.u64 %off, %bit, 0;
  @%off bra done;
  mov.u64 %i, %first;
verify_word:
  setp.ge.u64 %end, %i, %words;
  @%end bra done;
  mad.lo.u64 %address, %i, 8, %base;
  add.u64 %want, %stamp, %i;
  ld.volatile.u64 %got, [%address];
  setp.eq.u64 %same, %got, %want;
  @%same bra next_word;
  st.u64 [%result+8], %block;
  st.u64 [%result+16], %i;
  st.u64 [%result+24], %got;
  membar.sys;
  mov.u64 %one, 1;
  st.u64 [%result], %one;
next_word:
  add.u64 %i, %i, %stride;
  bra verify_word;
done:
  ret;
}
)";

constexpr unsigned threads = 256;

// Enough thread blocks for the largest order to use the memory's bandwidth, few enough to be cheap for the others.
unsigned rows(const stamp_order* orders, unsigned count) {
  constexpr std::uint64_t words_a_row = std::uint64_t{16} * threads;
  std::uint64_t most = 0;
  for (unsigned i = 0; i < count; ++i) most = std::max(most, orders[i].words);
  return static_cast<unsigned>(std::clamp<std::uint64_t>(most / words_a_row, 1, 512));
}

class cuda_stamper final : public stamper {
 public:
  explicit cuda_stamper(rig& r) : rig_(r), driver_(r.driver()) {
    loaded_.resize(static_cast<std::size_t>(r.devices()));
    for (int d = 0; d < r.devices(); ++d) {
      loaded& at = loaded_[static_cast<std::size_t>(d)];
      r.use(d);
      r.must(driver_.cuModuleLoadData(&at.code, kernel_text), "cuModuleLoadData", d);
      r.must(driver_.cuModuleGetFunction(&at.function, at.code, "weir_stamp"), "cuModuleGetFunction", d);
    }
  }

  // Queued kernels read the shared memory. Nothing can be done about a failure here.
  ~cuda_stamper() override {
    try {
      for (int d = 0; d < rig_.devices(); ++d) {
        rig_.use(d);
        driver_.cuCtxSynchronize();
        driver_.cuModuleUnload(loaded_[static_cast<std::size_t>(d)].code);
      }
    } catch (const fault_error&) {
    }
    for (void* p : memory_) driver_.cuMemFreeHost(p);
  }

  void* shared_memory(std::size_t bytes) override {
    void* p = nullptr;
    rig_.use(0);
    rig_.must(driver_.cuMemHostAlloc(&p, bytes, CU_MEMHOSTALLOC_PORTABLE), "cuMemHostAlloc", 0);
    std::memset(p, 0, bytes);
    const std::lock_guard lock(mutex_);
    memory_.push_back(p);
    return p;
  }

  void launch(int device, stream_t stream, const stamp_order* orders, unsigned count, stamp_result* result) override {
    void* arguments[] = {&orders, &result};
    const CUfunction function = loaded_[static_cast<std::size_t>(device)].function;
    rig_.must(
        driver_.cuLaunchKernel(function, count, rows(orders, count), 1, threads, 1, 1, 0, stream, arguments, nullptr),
        "cuLaunchKernel", device);
  }

 private:
  struct loaded {
    CUmodule code = nullptr;
    CUfunction function = nullptr;
  };
  rig& rig_;
  const driver::table& driver_;
  std::vector<loaded> loaded_;
  std::mutex mutex_;
  std::vector<void*> memory_;
};

}  // namespace

std::unique_ptr<stamper> make_cuda_stamper(rig& r) { return std::make_unique<cuda_stamper>(r); }

}  // namespace weir::cli
