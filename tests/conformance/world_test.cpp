// Every kind: the caller's world (C7) and total freeing (C4).

#include <gmock/gmock.h>

#include "conformance/kinds.hpp"
#include "driver/table.hpp"

namespace weir::test {
namespace {

class world_conformance : public conformance {
 protected:
  // Runs `call` with each device current, and none: device, context and capture mode must stay.
  void leaves_the_world_alone(const std::function<void()>& call) {
    const driver::table& cu = rig_.machine->table();
    for (const int device : {-1, 1, 0}) {
      SCOPED_TRACE(device);
      rig_.machine->set_device(device);
      CUcontext before = nullptr;
      CUcontext after = nullptr;
      EXPECT_EQ(cu.cuCtxGetCurrent(&before), CUDA_SUCCESS);
      call();
      EXPECT_EQ(cu.cuCtxGetCurrent(&after), CUDA_SUCCESS);
      EXPECT_EQ(after, before);
      EXPECT_EQ(rig_.machine->current_device(), device);
      CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
      EXPECT_EQ(cu.cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
      EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
      EXPECT_EQ(cu.cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
    }
    rig_.machine->set_device(-1);
  }
};

TEST_P(world_conformance, no_call_changes_the_current_device) {
  for (const std::size_t bytes : {std::size_t{100}, std::size_t{70000}, 40 * mib}) {
    leaves_the_world_alone([&] {
      void* p = allocate(bytes);
      EXPECT_EQ(info(p).base, p);
      deallocate(p);
    });
  }
  leaves_the_world_alone([&] { EXPECT_EQ(try_allocate(100 * gib), nullptr); });
  leaves_the_world_alone([&] { EXPECT_THROW(static_cast<void>(allocate(1, 3)), weir::error); });
  leaves_the_world_alone([&] { rig_.service->collect(); });
  leaves_the_world_alone([&] { rig_.service->trim(); });
  leaves_the_world_alone([&] { static_cast<void>(rig_.service->statistics()); });
  leaves_the_world_alone([&] { static_cast<void>(rig_.service->summary()); });
  leaves_the_world_alone([&] { static_cast<void>(rig_.service->info(0)); });
  leaves_the_world_alone([&] { static_cast<void>(rig_.service->check()); });
  leaves_the_world_alone([&] { rig_.service->limit(0, rig_.service->limit(0)); });
}

TEST_P(world_conformance, no_context_appears_on_a_device_that_was_not_asked_for) {
  deallocate(allocate(5 * mib));
  rig_.service->trim();
  static_cast<void>(rig_.service->statistics());
  static_cast<void>(rig_.service->summary());
  rig_.service->collect();
  EXPECT_TRUE(rig_.machine->context_active(0));
  EXPECT_FALSE(rig_.machine->context_active(1));
}

TEST_P(world_conformance, freeing_in_a_host_callback_makes_no_driver_call) {
  if (!runs_kernels()) GTEST_SKIP() << "a capture's kernels do not run";
  std::vector<void*> blocks;
  for (const std::size_t bytes : {100u, 5000u, 1u << 20, 3u << 20}) {
    for (int i = 0; i < 50; ++i) blocks.push_back(allocate(bytes));
  }
  // The machine reports a fault if a kernel calls the driver (rig::finish looks). The kernel's thread is new to Weir.
  rig_.machine->launch(stream_, [&] {
    for (void* p : blocks) weir::deallocate(p);
  });
  rig_.machine->synchronize(stream_);
  EXPECT_EQ(rig_.statistics().live, 0u);
  EXPECT_THAT(rig_.misuses(), testing::IsEmpty());
}

TEST_P(world_conformance, freeing_is_a_threads_first_call) {
  std::vector<void*> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(allocate(static_cast<std::size_t>(i) * 40000 + 1));
  for (void* p : blocks) {
    std::thread([p] { weir::deallocate(p); }).join();
  }
  EXPECT_EQ(rig_.statistics().live, 0u);
  EXPECT_THAT(rig_.misuses(), testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(kinds, world_conformance, testing::ValuesIn(kinds()),
                         [](const auto& made) { return made.param.name; });

}  // namespace
}  // namespace weir::test
