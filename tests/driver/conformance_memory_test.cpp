// What both drivers do with memory.
#include "driver/conformance.hpp"

namespace weir::test {
namespace {

class conformance_memory : public conformance {};

TEST_P(conformance_memory, two_addresses_of_one_handle_show_the_same_bytes) {
  const CUstream s = stream();
  const auto handle = create();
  const CUdeviceptr one = reserve();
  const CUdeviceptr two = reserve();
  map(one, handle);
  map(two, handle);
  EXPECT_EQ(cu().cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(cu().cuMemsetD8Async(one, 17, chunk, s), CUDA_SUCCESS);
  EXPECT_EQ(read(two, s), 17);
  unmap(one);
  EXPECT_EQ(read(two + chunk - 1, s), 17);
  unmap(two);
  EXPECT_EQ(cu().cuMemAddressFree(one, chunk), CUDA_SUCCESS);
  EXPECT_EQ(cu().cuMemAddressFree(two, chunk), CUDA_SUCCESS);
  EXPECT_EQ(cu().cuStreamDestroy(s), CUDA_SUCCESS);
}

TEST_P(conformance_memory, queued_work_resolves_addresses_when_it_runs) {
  const CUstream s = stream();
  const auto before = create();
  const auto after = create();
  const CUdeviceptr at = reserve();
  const CUdeviceptr window = reserve();
  map(at, before);
  EXPECT_EQ(cu().cuMemsetD8Async(at, 1, chunk, s), CUDA_SUCCESS);
  EXPECT_EQ(cu().cuStreamSynchronize(s), CUDA_SUCCESS);
  hold(s);
  EXPECT_EQ(cu().cuMemsetD8Async(at, 2, chunk, s), CUDA_SUCCESS);
  unmap(at);
  map(at, after);
  open();
  EXPECT_EQ(read(at, s), 2);
  map(window, before);
  EXPECT_EQ(read(window, s), 1);  // the old memory was not written
  unmap(at);
  unmap(window);
  cu().cuMemRelease(before);
  cu().cuMemRelease(after);
  cu().cuMemAddressFree(at, chunk);
  cu().cuMemAddressFree(window, chunk);
  cu().cuStreamDestroy(s);
}

TEST_P(conformance_memory, memory_calls_do_not_wait_for_running_work) {
  const CUstream s = stream();
  const CUevent e = event();
  hold(s);
  cu().cuEventRecord(e, s);
  const CUdeviceptr at = reserve();
  const auto handle = create();
  map(at, handle);
  unmap(at);
  EXPECT_EQ(cu().cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(cu().cuMemAddressFree(at, chunk), CUDA_SUCCESS);
  EXPECT_EQ(cu().cuEventQuery(e), CUDA_ERROR_NOT_READY);  // all of it while the stream was held
  open();
  cu().cuStreamSynchronize(s);
  cu().cuEventDestroy(e);
  cu().cuStreamDestroy(s);
}

TEST_P(conformance_memory, wrong_ranges_are_refused) {
  const CUdeviceptr at = reserve(2 * chunk);
  const auto handle = create(2 * chunk);
  map(at, handle, 2 * chunk);
  EXPECT_NE(cu().cuMemMap(at, 2 * chunk, 0, handle, 0), CUDA_SUCCESS);  // taken
  EXPECT_NE(cu().cuMemUnmap(at, chunk), CUDA_SUCCESS);                  // half a mapping
  EXPECT_NE(cu().cuMemAddressFree(at, 2 * chunk), CUDA_SUCCESS);        // still mapped
  unmap(at, 2 * chunk);
  EXPECT_EQ(cu().cuMemAddressFree(at, 2 * chunk), CUDA_SUCCESS);
  EXPECT_EQ(cu().cuMemRelease(handle), CUDA_SUCCESS);
}

TEST_P(conformance_memory, sizes_must_fit_granularity_and_device) {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  std::size_t granularity = 0;
  EXPECT_EQ(cu().cuMemGetAllocationGranularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM), CUDA_SUCCESS);
  EXPECT_EQ(granularity, chunk);
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(cu().cuMemCreate(&handle, granularity / 2, &prop, 0), CUDA_ERROR_INVALID_VALUE);
  std::size_t free = 0;
  std::size_t total = 0;
  EXPECT_EQ(cu().cuMemGetInfo(&free, &total), CUDA_SUCCESS);
  EXPECT_EQ(cu().cuMemCreate(&handle, (total / chunk + 1) * chunk, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_P(conformance_memory, reservations_can_be_aligned_to_four_gib) {
  constexpr std::size_t four_gib = std::size_t{4} << 30;
  CUdeviceptr at = 0;
  EXPECT_EQ(cu().cuMemAddressReserve(&at, four_gib, four_gib, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(at % four_gib, 0U);
  EXPECT_EQ(cu().cuMemAddressFree(at, four_gib), CUDA_SUCCESS);
}

TEST_P(conformance_memory, free_memory_falls_by_what_was_created) {
  std::size_t before = 0;
  std::size_t after = 0;
  std::size_t total = 0;
  cu().cuMemGetInfo(&before, &total);
  const auto handle = create(64 * chunk);
  cu().cuMemGetInfo(&after, &total);
  EXPECT_EQ(before - after, 64 * chunk);
  EXPECT_EQ(cu().cuMemRelease(handle), CUDA_SUCCESS);
}

INSTANTIATE_TEST_SUITE_P(drivers, conformance_memory, testing::Values(which_driver::simulated, which_driver::installed),
                         name_of_driver);

}  // namespace
}  // namespace weir::test
