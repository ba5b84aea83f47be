// Many threads on one machine: memory comes and goes, streams and events too; nothing is left and nothing is wrong.
#include <atomic>
#include <random>

#include "driver/fixture.hpp"

namespace weir::test {
namespace {

void one_thread(sim::machine& machine, int device, unsigned seed, std::atomic<int>& wrong) {
  const driver::table& cu = machine.table();
  machine.set_device(device);
  std::mt19937 random(seed);
  const auto pattern = static_cast<unsigned char>(seed + 1);
  for (int round = 0; round < 60; ++round) {
    CUstream s = nullptr;
    CUstream second = nullptr;
    CUevent e = nullptr;
    cu.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING);
    cu.cuStreamCreate(&second, CU_STREAM_NON_BLOCKING);
    cu.cuEventCreate(&e, CU_EVENT_DISABLE_TIMING);
    const std::size_t chunks = 1 + random() % 3;
    const std::size_t bytes = chunks * 2 * mib;
    CUdeviceptr at = 0;
    CUmemGenericAllocationHandle handle = 0;
    CUmemAllocationProp prop = driver_machine::on_device(device);
    CUmemAccessDesc desc{prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    cu.cuMemAddressReserve(&at, bytes, 0, 0, 0);
    for (std::size_t i = 0; i < chunks; ++i) {
      cu.cuMemCreate(&handle, 2 * mib, &prop, 0);
      cu.cuMemMap(at + i * 2 * mib, 2 * mib, 0, handle, 0);
      cu.cuMemRelease(handle);
    }
    cu.cuMemSetAccess(at, bytes, &desc, 1);
    const std::size_t offset = random() % (bytes - 8192);
    machine.fill(s, pointer(at + offset), pattern, 8192);
    cu.cuEventRecord(e, s);
    cu.cuStreamWaitEvent(second, e, 0);
    if (round % 2 == 0) cu.cuStreamDestroy(s);
    machine.expect(second, pointer(at + offset), pattern, 8192, [&](std::size_t, unsigned char) { ++wrong; });
    cu.cuEventRecord(e, second);
    while (cu.cuEventQuery(e) == CUDA_ERROR_NOT_READY) std::this_thread::yield();
    cu.cuMemUnmap(at, bytes);
    cu.cuMemAddressFree(at, bytes);
    cu.cuEventDestroy(e);
    cu.cuStreamDestroy(second);
    if (round % 2 != 0) cu.cuStreamDestroy(s);
  }
  machine.set_device(-1);
}

TEST(sim_stress, threads_devices_streams_memory) {
  sim::machine_config config;
  config.devices.resize(3);
  driver_machine m(config);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 9; ++i)
    threads.emplace_back([&, i] { one_thread(m.machine, static_cast<int>(i % 3), i, wrong); });
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  for (const sim::fault& f : m.machine.faults()) ADD_FAILURE() << f.text;
  EXPECT_EQ(m.machine.live(), sim::live_counts{});
  for (int d = 0; d < 3; ++d) EXPECT_EQ(m.machine.reserved_bytes(d), 0U);
}

TEST(sim_stress, a_device_is_lost_and_reset_while_all_work) {
  driver_machine m;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (!stop) {
        CUstream s = nullptr;
        m.machine.set_device(-1);
        CUcontext c = nullptr;
        if (m.cu.cuDevicePrimaryCtxRetain(&c, 1) != CUDA_SUCCESS) continue;
        if (m.cu.cuCtxPushCurrent(c) != CUDA_SUCCESS) continue;
        if (m.cu.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS) {
          m.cu.cuLaunchHostFunc(
              s, [](void*) {}, nullptr);
          m.cu.cuStreamSynchronize(s);
        }
        m.cu.cuCtxPopCurrent(nullptr);
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    m.machine.kill(1);
    m.machine.reset(1);
  }
  stop = true;
  for (auto& t : threads) t.join();
  const stream_t s = m.machine.create_stream(1);
  std::atomic<int> ran{0};
  m.machine.launch(s, [&] { ran = 1; });
  m.machine.synchronize(s);
  EXPECT_EQ(ran, 1);
}

}  // namespace
}  // namespace weir::test
