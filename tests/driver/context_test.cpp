// Contexts, the guards, devices and their attributes, forked children.
#include <sys/wait.h>
#include <unistd.h>

#include "driver/api.hpp"
#include "driver/fixture.hpp"
#include "driver/guards.hpp"

namespace weir::test {
namespace {

TEST(sim_context, nothing_works_before_cu_init) {
  const sim::machine m;
  int count = 0;
  EXPECT_EQ(m.table().cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
  EXPECT_EQ(m.table().cuInit(0), CUDA_SUCCESS);
  EXPECT_EQ(m.table().cuDeviceGetCount(&count), CUDA_SUCCESS);
  EXPECT_EQ(count, 2);
}

TEST(sim_context, contexts_appear_only_where_asked_for) {
  sim::machine machine;
  const driver::table& cu = machine.table();
  cu.cuInit(0);
  EXPECT_FALSE(machine.context_active(0));
  CUcontext c = nullptr;
  EXPECT_EQ(cu.cuDevicePrimaryCtxRetain(&c, 1), CUDA_SUCCESS);
  EXPECT_TRUE(machine.context_active(1));
  EXPECT_FALSE(machine.context_active(0));
  CUstream s = nullptr;
  EXPECT_EQ(cu.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cu.cuCtxPushCurrent(c), CUDA_SUCCESS);
  EXPECT_EQ(cu.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  CUcontext of_stream = nullptr;
  EXPECT_EQ(cu.cuStreamGetCtx(s, &of_stream), CUDA_SUCCESS);
  EXPECT_EQ(of_stream, c);
  EXPECT_EQ(cu.cuDevicePrimaryCtxRelease(1), CUDA_SUCCESS);  // streams go with their context
  EXPECT_FALSE(machine.context_active(1));
  EXPECT_EQ(machine.live().streams, 0U);
  EXPECT_EQ(cu.cuDevicePrimaryCtxRelease(1), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cu.cuStreamCreate(&s, 0), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  cu.cuCtxPopCurrent(nullptr);
}

TEST(sim_context, the_stack_is_the_threads_own) {
  driver_machine m;
  m.machine.set_device(1);
  int elsewhere = 0;
  std::thread([&] { elsewhere = m.machine.current_device(); }).join();
  EXPECT_EQ(elsewhere, -1);
  EXPECT_EQ(m.machine.current_device(), 1);
}

TEST(guards, a_context_is_switched_only_if_another_is_current) {
  driver_machine m;
  driver::call_counters counters;
  const driver::api api(m.cu, counters);
  CUcontext first = nullptr;
  CUcontext second = nullptr;
  m.cu.cuCtxGetCurrent(&first);
  m.cu.cuDevicePrimaryCtxRetain(&second, 1);
  {
    const driver::context_guard same(api, first);
    EXPECT_EQ(same.result(), CUDA_SUCCESS);
    EXPECT_EQ(counters.of(driver::call::k_cuCtxPushCurrent).count, 0U);
    const driver::context_guard other(api, second);
    EXPECT_EQ(m.machine.current_device(), 1);
  }
  EXPECT_EQ(m.machine.current_device(), 0);
  m.machine.set_device(-1);
  {
    const driver::context_guard from_none(api, second);
    EXPECT_EQ(m.machine.current_device(), 1);
  }
  EXPECT_EQ(m.machine.current_device(), -1);
  m.machine.fail("cuCtxPushCurrent", 1, sim::result::unknown);
  {
    const driver::context_guard failed(api, second);
    EXPECT_EQ(failed.result(), CUDA_ERROR_UNKNOWN);
  }
  EXPECT_EQ(m.machine.current_device(), -1);
}

TEST(guards, relaxed_capture_puts_the_mode_back) {
  driver_machine m;
  driver::call_counters counters;
  const driver::api api(m.cu, counters);
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
  m.cu.cuThreadExchangeStreamCaptureMode(&mode);
  {
    const driver::relaxed_capture scope(api);
    CUstreamCaptureMode inside = CU_STREAM_CAPTURE_MODE_RELAXED;
    m.cu.cuThreadExchangeStreamCaptureMode(&inside);
    EXPECT_EQ(inside, CU_STREAM_CAPTURE_MODE_RELAXED);
  }
  mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  m.cu.cuThreadExchangeStreamCaptureMode(&mode);
  EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

TEST(sim_context, devices_are_what_they_were_made) {
  sim::machine_config config;
  config.devices.resize(2);
  config.devices[1].name = "second";
  config.devices[1].memory = 80 * mib;
  config.devices[1].numa_node = 3;
  config.devices[1].pci_bus_id = "0001:4a:00.0";
  config.devices[1].uuid = "000102030405060708090a0b0c0d0eff";
  config.devices[1].vmm = false;
  driver_machine m(config);
  char text[64];
  EXPECT_EQ(m.cu.cuDeviceGetName(text, sizeof text, 1), CUDA_SUCCESS);
  EXPECT_STREQ(text, "second");
  EXPECT_EQ(m.cu.cuDeviceGetPCIBusId(text, sizeof text, 1), CUDA_SUCCESS);
  EXPECT_STREQ(text, "0001:4a:00.0");
  CUuuid uuid{};
  EXPECT_EQ(m.cu.cuDeviceGetUuid(&uuid, 1), CUDA_SUCCESS);
  EXPECT_EQ(uuid.bytes[14], 14);
  EXPECT_EQ(static_cast<unsigned char>(uuid.bytes[15]), 0xff);
  auto attribute = [&](CUdevice_attribute which, int device) {
    int value = -99;
    EXPECT_EQ(m.cu.cuDeviceGetAttribute(&value, which, device), CUDA_SUCCESS);
    return value;
  };
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, 1), 3);
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 1), 1);
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 1), 0x4a);
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0), 1);
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1), 0);
  CUmemGenericAllocationHandle handle = 0;
  const CUmemAllocationProp prop = driver_machine::on_device(1);
  EXPECT_EQ(m.cu.cuMemCreate(&handle, 2 * mib, &prop, 0), CUDA_ERROR_NOT_SUPPORTED);
  CUuuid other{};
  m.cu.cuDeviceGetUuid(&other, 0);
  EXPECT_EQ(std::string(other.bytes, 14), "weir-simulated");
  CUdevice none = 0;
  EXPECT_EQ(m.cu.cuDeviceGet(&none, 2), CUDA_ERROR_INVALID_DEVICE);
}

TEST(sim_context, wrong_configurations_are_named) {
  sim::machine_config config;
  config.granularity = 3;
  EXPECT_THROW(sim::machine{config}, std::invalid_argument);
  config = {};
  config.no_peer = {{0, 7}};
  EXPECT_THROW(sim::machine{config}, std::invalid_argument);
}

TEST(sim_context, a_forked_child_is_refused_and_can_exit) {
  driver_machine m;
  const pid_t child = fork();
  if (child == 0) {
    CUcontext c = nullptr;
    _exit(m.cu.cuCtxGetCurrent(&c) == CUDA_ERROR_NOT_INITIALIZED ? 7 : 8);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  CUcontext c = nullptr;
  EXPECT_EQ(m.cu.cuCtxGetCurrent(&c), CUDA_SUCCESS);
}

TEST(sim_context, a_machine_may_be_destroyed_in_a_forked_child) {
  auto machine = std::make_unique<sim::machine>();
  machine->launch(machine->create_stream(0), [] {});  // its threads do not exist in the child
  machine->synchronize(0);
  const pid_t child = fork();
  if (child == 0) {
    machine.reset();
    _exit(7);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

}  // namespace
}  // namespace weir::test
