// Reservations, handles, mappings, aliases, access.
#include <unistd.h>

#include <cstring>

#include "driver/fixture.hpp"

namespace weir::test {
namespace {

TEST(sim_memory, what_is_mapped_can_be_used_and_nothing_is_left) {
  driver_machine m;
  const CUdeviceptr at = m.memory(4 * mib);
  EXPECT_EQ(m.machine.reserved_bytes(0), 4 * mib);
  auto* bytes = static_cast<unsigned char*>(m.machine.view(0, pointer(at + 100), 16));
  bytes[0] = 7;
  EXPECT_EQ(*static_cast<unsigned char*>(m.machine.view(0, pointer(at + 100), 1)), 7);
  m.give_back(at, 4 * mib);
  EXPECT_EQ(m.machine.live(), sim::live_counts{});
  EXPECT_EQ(m.machine.reserved_bytes(0), 0U);
  EXPECT_TRUE(m.machine.faults().empty());
}

TEST(sim_memory, released_memory_keeps_no_contents) {
  driver_machine m;
  const CUdeviceptr at = m.memory(2 * mib);
  std::memset(m.machine.view(0, pointer(at), 2 * mib), 1, 2 * mib);
  m.give_back(at, 2 * mib);
  const CUdeviceptr again = m.memory(2 * mib);
  EXPECT_EQ(again, at);  // addresses come back at once
  EXPECT_EQ(*static_cast<unsigned char*>(m.machine.view(0, pointer(again), 1)), 0);
  m.give_back(again, 2 * mib);
}

TEST(sim_memory, host_access_to_device_memory_faults) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  driver_machine m;
  const CUdeviceptr at = m.memory(2 * mib);
  EXPECT_DEATH(std::memset(pointer(at), 0, 1), "");
  m.give_back(at, 2 * mib);
}

TEST(sim_memory, aliases_show_the_same_bytes) {
  driver_machine m;
  const CUdeviceptr one = m.reserve(2 * mib);
  const CUdeviceptr two = m.reserve(2 * mib);
  const CUmemGenericAllocationHandle handle = m.create(2 * mib);
  m.map(one, 2 * mib, handle);
  m.map(two, 2 * mib, handle);
  EXPECT_EQ(m.allow(one, 2 * mib, 0), CUDA_SUCCESS);
  EXPECT_EQ(m.allow(two, 2 * mib, 0), CUDA_SUCCESS);
  EXPECT_EQ(m.cu.cuMemRelease(handle), CUDA_SUCCESS);
  std::strcpy(static_cast<char*>(m.machine.view(0, pointer(one + 5), 16)), "weir");
  EXPECT_STREQ(static_cast<char*>(m.machine.view(0, pointer(two + 5), 16)), "weir");
  EXPECT_EQ(m.machine.reserved_bytes(0), 2 * mib);  // once, however many addresses it has
  m.give_back(one, 2 * mib);
  EXPECT_STREQ(static_cast<char*>(m.machine.view(0, pointer(two + 5), 16)), "weir");
  m.give_back(two, 2 * mib);
  EXPECT_EQ(m.machine.reserved_bytes(0), 0U);
}

TEST(sim_memory, a_view_crosses_the_seams_of_chunks) {
  driver_machine m;
  const CUdeviceptr at = m.reserve(6 * mib);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto handle = m.create(2 * mib);
    m.map(at + i * 2 * mib, 2 * mib, handle);
    m.cu.cuMemRelease(handle);
  }
  EXPECT_EQ(m.allow(at, 6 * mib, 0), CUDA_SUCCESS);
  auto* whole = static_cast<unsigned char*>(m.machine.view(0, pointer(at), 6 * mib));
  std::memset(whole, 9, 6 * mib);
  EXPECT_EQ(m.cu.cuMemUnmap(at + 2 * mib, 2 * mib), CUDA_SUCCESS);
  EXPECT_THROW(m.machine.view(0, pointer(at), 6 * mib), sim::illegal_access);
  EXPECT_EQ(*static_cast<unsigned char*>(m.machine.view(0, pointer(at + 6 * mib - 1), 1)), 9);
  EXPECT_EQ(m.cu.cuMemUnmap(at, 2 * mib), CUDA_SUCCESS);
  EXPECT_EQ(m.cu.cuMemUnmap(at + 4 * mib, 2 * mib), CUDA_SUCCESS);
  EXPECT_EQ(m.cu.cuMemAddressFree(at, 6 * mib), CUDA_SUCCESS);
}

TEST(sim_memory, access_is_per_device) {
  driver_machine m;
  const CUdeviceptr at = m.reserve(2 * mib);
  const auto handle = m.create(2 * mib);
  m.map(at, 2 * mib, handle);
  EXPECT_FALSE(m.machine.accessible(0, pointer(at), 1));  // mapped, but nobody may use it yet
  EXPECT_EQ(m.allow(at, 2 * mib, 0), CUDA_SUCCESS);
  EXPECT_TRUE(m.machine.accessible(0, pointer(at), 2 * mib));
  EXPECT_FALSE(m.machine.accessible(1, pointer(at), 1));
  EXPECT_EQ(m.allow(at, 2 * mib, 1, CU_MEM_ACCESS_FLAGS_PROT_READ), CUDA_SUCCESS);
  EXPECT_TRUE(m.machine.accessible(1, pointer(at), 1, sim::access::read));
  EXPECT_FALSE(m.machine.accessible(1, pointer(at), 1));
  const CUmemLocation second = place(CU_MEM_LOCATION_TYPE_DEVICE, 1);
  unsigned long long flags = 0;
  EXPECT_EQ(m.cu.cuMemGetAccess(&flags, &second, at), CUDA_SUCCESS);
  EXPECT_EQ(flags, static_cast<unsigned long long>(CU_MEM_ACCESS_FLAGS_PROT_READ));
  m.cu.cuMemRelease(handle);
  m.give_back(at, 2 * mib);
}

TEST(sim_memory, devices_without_a_path_get_no_access) {
  sim::machine_config config;
  config.devices.resize(3);
  config.no_peer = {{0, 2}};
  driver_machine m(config);
  const CUdeviceptr at = m.memory(2 * mib);
  EXPECT_EQ(m.allow(at, 2 * mib, 1), CUDA_SUCCESS);
  EXPECT_EQ(m.allow(at, 2 * mib, 2), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
  int can = -1;
  EXPECT_EQ(m.cu.cuDeviceCanAccessPeer(&can, 0, 2), CUDA_SUCCESS);
  EXPECT_EQ(can, 0);
  EXPECT_EQ(m.cu.cuDeviceCanAccessPeer(&can, 0, 1), CUDA_SUCCESS);
  EXPECT_EQ(can, 1);
  m.give_back(at, 2 * mib);
}

TEST(sim_memory, capacity_counts_other_processes) {
  sim::machine_config config;
  config.devices[0].memory = 64 * mib;
  driver_machine m(config);
  const auto first = m.create(32 * mib);
  CUmemGenericAllocationHandle handle = 0;
  const CUmemAllocationProp prop = driver_machine::on_device(0);
  m.machine.other_process_holds(0, 16 * mib);
  EXPECT_EQ(m.cu.cuMemCreate(&handle, 32 * mib, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
  std::size_t free = 0;
  std::size_t total = 0;
  EXPECT_EQ(m.cu.cuMemGetInfo(&free, &total), CUDA_SUCCESS);
  EXPECT_EQ(free, 16 * mib);
  EXPECT_EQ(total, 64 * mib);
  EXPECT_EQ(m.cu.cuMemCreate(&handle, 16 * mib, &prop, 0), CUDA_SUCCESS);
  EXPECT_EQ(m.cu.cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(m.cu.cuMemRelease(first), CUDA_SUCCESS);
  EXPECT_EQ(m.cu.cuMemRelease(first), CUDA_ERROR_INVALID_VALUE);
}

TEST(sim_memory, wrong_arguments_change_nothing) {
  driver_machine m;
  const CUdeviceptr at = m.reserve(8 * mib);
  const auto handle = m.create(4 * mib);
  EXPECT_EQ(m.cu.cuMemMap(at + mib, 4 * mib, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);      // not aligned
  EXPECT_EQ(m.cu.cuMemMap(at + 6 * mib, 4 * mib, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);  // past the end
  EXPECT_EQ(m.cu.cuMemMap(at, 8 * mib, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);            // more than there is
  m.map(at, 4 * mib, handle);
  EXPECT_EQ(m.cu.cuMemMap(at + 2 * mib, 4 * mib, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);  // taken
  EXPECT_EQ(m.cu.cuMemUnmap(at, 2 * mib), CUDA_ERROR_INVALID_VALUE);                        // half a mapping
  EXPECT_EQ(m.cu.cuMemUnmap(at, 8 * mib), CUDA_ERROR_INVALID_VALUE);                        // a gap
  EXPECT_EQ(m.cu.cuMemAddressFree(at, 8 * mib), CUDA_ERROR_INVALID_VALUE);                  // still mapped
  EXPECT_EQ(m.cu.cuMemUnmap(at, 4 * mib), CUDA_SUCCESS);
  EXPECT_EQ(m.cu.cuMemAddressFree(at, 4 * mib), CUDA_ERROR_INVALID_VALUE);  // not the reservation
  EXPECT_EQ(m.cu.cuMemAddressFree(at, 8 * mib), CUDA_SUCCESS);
  EXPECT_EQ(m.cu.cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(m.machine.live(), sim::live_counts{});
}

TEST(sim_memory, a_handle_can_be_had_again_from_its_address) {
  driver_machine m;
  const CUdeviceptr at = m.memory(2 * mib);
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(m.cu.cuMemRetainAllocationHandle(&handle, pointer(at + 4096)), CUDA_SUCCESS);
  CUmemAllocationProp prop{};
  EXPECT_EQ(m.cu.cuMemGetAllocationPropertiesFromHandle(&prop, handle), CUDA_SUCCESS);
  EXPECT_EQ(prop.location.id, 0);
  m.give_back(at, 2 * mib);
  EXPECT_EQ(m.machine.reserved_bytes(0), 2 * mib);
  EXPECT_EQ(m.cu.cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(m.machine.reserved_bytes(0), 0U);
}

TEST(sim_memory, reservations_have_limits_and_alignments) {
  sim::machine_config config;
  config.max_reservation = 64 * mib;
  config.reservable = 96 * mib;
  driver_machine m(config);
  CUdeviceptr at = 0;
  EXPECT_EQ(m.cu.cuMemAddressReserve(&at, 128 * mib, 0, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
  const CUdeviceptr first = m.reserve(64 * mib, std::size_t{1} << 32);
  EXPECT_EQ(first % (std::uint64_t{1} << 32), 0U);
  EXPECT_EQ(m.cu.cuMemAddressReserve(&at, 64 * mib, 0, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
  const CUdeviceptr second = m.reserve(32 * mib);
  EXPECT_EQ(m.cu.cuMemAddressFree(first, 64 * mib), CUDA_SUCCESS);
  EXPECT_EQ(m.cu.cuMemAddressFree(second, 32 * mib), CUDA_SUCCESS);
  EXPECT_EQ(m.machine.live(), sim::live_counts{});
}

TEST(sim_memory, a_driver_may_ignore_the_alignment_asked) {
  sim::machine_config config;
  config.reservation_alignment = 64 * 1024;
  config.honour_alignment = false;
  driver_machine m(config);
  const CUdeviceptr at = m.reserve(4 * mib, 2 * mib);
  EXPECT_EQ(at % (64 * 1024), 0U);
  EXPECT_NE(at % (128 * 1024), 0U);
  EXPECT_EQ(m.cu.cuMemAddressFree(at, 4 * mib), CUDA_SUCCESS);
}

TEST(sim_memory, host_memory_at_a_node_is_usable_by_host_and_device) {
  sim::machine_config config;
  config.numa_nodes = {8 * mib, 8 * mib};
  driver_machine m(config);
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = place(CU_MEM_LOCATION_TYPE_HOST_NUMA, 1);
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_EQ(m.cu.cuMemCreate(&handle, 8 * mib, &prop, 0), CUDA_SUCCESS);
  EXPECT_EQ(m.machine.reserved_host_bytes(1), 8 * mib);
  CUmemGenericAllocationHandle more = 0;
  EXPECT_EQ(m.cu.cuMemCreate(&more, 2 * mib, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);  // the node is full
  const CUdeviceptr at = m.reserve(8 * mib);
  m.map(at, 8 * mib, handle);
  CUmemAccessDesc both[2]{};
  both[0] = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  both[1] = {place(CU_MEM_LOCATION_TYPE_DEVICE, 0), CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  ASSERT_EQ(m.cu.cuMemSetAccess(at, 8 * mib, both, 2), CUDA_SUCCESS);
  static_cast<char*>(pointer(at))[3] = 42;  // the host itself
  EXPECT_EQ(static_cast<char*>(m.machine.view(0, pointer(at), 8))[3], 42);
  EXPECT_EQ(m.cu.cuMemRelease(handle), CUDA_SUCCESS);
  m.give_back(at, 8 * mib);
  EXPECT_EQ(m.machine.reserved_host_bytes(1), 0U);
}

TEST(sim_memory, export_needs_to_be_asked_for_at_creation) {
  driver_machine m;
  const auto plain = m.create(2 * mib);
  int file = -1;
  EXPECT_EQ(m.cu.cuMemExportToShareableHandle(&file, plain, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
            CUDA_ERROR_INVALID_VALUE);
  m.cu.cuMemRelease(plain);
  CUmemAllocationProp prop = driver_machine::on_device(0);
  prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(m.cu.cuMemCreate(&handle, 2 * mib, &prop, 0), CUDA_SUCCESS);
  EXPECT_EQ(m.cu.cuMemExportToShareableHandle(&file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
            CUDA_SUCCESS);
  EXPECT_EQ(close(file), 0);
  m.cu.cuMemRelease(handle);
}

}  // namespace
}  // namespace weir::test
