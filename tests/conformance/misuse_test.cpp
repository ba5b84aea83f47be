// Every kind: what a wrong free does (C10): it is told of, and changes nothing.

#include <gmock/gmock.h>

#include <algorithm>

#include "conformance/kinds.hpp"

namespace weir::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class misuse_conformance : public conformance {
 protected:
  // What `free_wrongly` was reported as; the counters must not move by it.
  std::vector<misuse::kind> reported(const std::function<void()>& free_wrongly, const void* address) {
    const device_statistics before = rig_.statistics();
    const std::uint64_t misuses = rig_.service->statistics().misuses;
    free_wrongly();
    const device_statistics after = rig_.statistics();
    EXPECT_EQ(after.live, before.live);
    EXPECT_EQ(after.asked, before.asked);
    EXPECT_EQ(after.frees, before.frees);
    EXPECT_EQ(after.reserved, before.reserved);
    std::vector<misuse::kind> kinds;
    for (const heard_misuse& m : rig_.misuses()) {
      EXPECT_EQ(m.address, address);
      EXPECT_THAT(m.text, testing::Not(testing::HasSubstr("\n")));
      EXPECT_FALSE(m.text.empty());
      kinds.push_back(m.what);
    }
    EXPECT_EQ(rig_.service->statistics().misuses, misuses + kinds.size());
    return kinds;
  }
};

constexpr std::size_t some_sizes[] = {100, 5000, 1 << 20, 3 << 20};

TEST_P(misuse_conformance, case_B42_a_double_free_is_told_of_and_gives_nothing_twice) {
  for (const std::size_t bytes : some_sizes) {
    SCOPED_TRACE(bytes);
    void* p = allocate(bytes);
    void* other = allocate(bytes);
    deallocate(p);
    EXPECT_THAT(reported([&] { deallocate(p); }, p), ElementsAre(misuse::kind::double_free));
    EXPECT_THAT(reported([&] { weir::deallocate(p); }, p), ElementsAre(misuse::kind::double_free));
    EXPECT_THAT(reported([&] { std::thread([&] { weir::deallocate(p); }).join(); }, p),
                ElementsAre(misuse::kind::double_free));
    void* q = allocate(bytes);
    void* r = allocate(bytes);
    EXPECT_NE(q, r);
    EXPECT_NE(q, other);
    EXPECT_NE(r, other);
    EXPECT_TRUE(rig_.machine->accessible(0, q, bytes));
    EXPECT_TRUE(rig_.machine->accessible(0, r, bytes));
    for (void* b : {q, r, other}) deallocate(b);
  }
}

TEST_P(misuse_conformance, a_double_free_while_the_stack_unwinds) {
  struct owner {
    std::function<void()> free;
    ~owner() { free(); }
  };
  void* p = allocate(700);
  try {
    const owner first{[&] { deallocate(p); }};
    const owner second{[&] { deallocate(p); }};
    throw std::runtime_error("the test's own");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(rig_.misuses().size(), 1u);
}

TEST_P(misuse_conformance, after_a_trim_a_second_free_is_still_refused) {
  void* p = allocate(5 * mib);
  void* small = allocate(100);
  deallocate(p);
  deallocate(small);
  rig_.service->trim();
  for (void* gone : {p, small}) {
    EXPECT_EQ(reported([&] { deallocate(gone); }, gone).size(), 1u);
  }
}

TEST_P(misuse_conformance, case_B44_an_interior_pointer_is_refused) {
  for (const std::size_t bytes : some_sizes) {
    SCOPED_TRACE(bytes);
    auto* p = static_cast<char*>(allocate(bytes));
    const std::size_t size = info(p).bytes;
    std::vector<std::size_t> offsets = {1, 8, 255, size - 1};
    if (size > 256) offsets.insert(offsets.end(), {256, 257, size - 256});
    if (size > 64 * kib) offsets.insert(offsets.end(), {64 * kib, 64 * kib + 256, size - 64 * kib});
    for (const std::size_t offset : offsets) {
      SCOPED_TRACE(offset);
      void* inside = p + offset;
      EXPECT_THAT(reported([&] { deallocate(inside); }, inside), ElementsAre(misuse::kind::interior_pointer));
      EXPECT_THAT(reported([&] { weir::deallocate(inside); }, inside), ElementsAre(misuse::kind::interior_pointer));
    }
    EXPECT_EQ(info(p).base, p);
    deallocate(p);
  }
}

TEST_P(misuse_conformance, case_B44_a_foreign_pointer_is_refused) {
  int local = 0;
  const auto heap = std::make_unique<int>(0);
  alignas(256) static char ours[512];
  void* p = allocate(1000);
  void* const addresses[] = {&local,
                             heap.get(),
                             ours,
                             ours + 256,
                             reinterpret_cast<void*>(std::uintptr_t{0x100}),
                             reinterpret_cast<void*>(~std::uintptr_t{0}),
                             reinterpret_cast<void*>(~std::uintptr_t{255}),
                             reinterpret_cast<void*>(std::uintptr_t{1} << 63),
                             reinterpret_cast<void*>((std::uintptr_t{1} << 48) + 4096),
                             reinterpret_cast<void*>(std::uintptr_t{1} << 47)};
  for (void* foreign : addresses) {
    SCOPED_TRACE(foreign);
    EXPECT_THAT(reported([&] { deallocate(foreign); }, foreign), ElementsAre(misuse::kind::foreign_pointer));
    EXPECT_THAT(reported([&] { weir::deallocate(foreign); }, foreign), ElementsAre(misuse::kind::foreign_pointer));
    block_info none;
    EXPECT_FALSE(rig_.service->query(foreign, none));
  }
  deallocate(p);
}

TEST_P(misuse_conformance, an_address_of_the_lane_that_was_never_given_is_refused) {
  auto* p = static_cast<char*>(allocate(3 * mib));
  // Beyond the run, in the same piece: pages that are free, and pages that no chunk backs.
  for (const std::size_t offset : {3 * mib, 4 * mib, 100 * mib}) {
    void* never = p + offset;
    EXPECT_EQ(reported([&] { deallocate(never); }, never).size(), 1u) << offset;
    block_info none;
    EXPECT_FALSE(rig_.service->query(never, none));
  }
  deallocate(p);
}

TEST_P(misuse_conformance, case_B44_a_block_of_another_service_goes_to_its_own_or_is_refused) {
  rig other(quiet(), devices(1));
  const weir::lane theirs = other.lane();
  for (const std::size_t bytes : some_sizes) {
    SCOPED_TRACE(bytes);
    void* p = weir::lane(theirs).allocate(bytes);
    // A lane and a service take only their own; the free function takes any service's.
    EXPECT_THAT(reported([&] { deallocate(p); }, p), ElementsAre(misuse::kind::other_service));
    EXPECT_THAT(reported([&] { rig_.service->deallocate(p); }, p), ElementsAre(misuse::kind::other_service));
    block_info found;
    EXPECT_FALSE(rig_.service->query(p, found));
    EXPECT_TRUE(other.service->query(p, found));
    weir::deallocate(p);
    EXPECT_FALSE(other.service->query(p, found));
  }
  EXPECT_THAT(other.misuses(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(kinds, misuse_conformance, testing::ValuesIn(kinds()),
                         [](const auto& made) { return made.param.name; });

}  // namespace
}  // namespace weir::test
