// The same random sequence on Weir and on a plain reference (a map of intervals), compared at every step.

#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "heap/dice.hpp"
#include "support/rig.hpp"

namespace weir::test {
namespace {

struct model_case {
  const char* name;
  std::uint64_t seed;
  config options;
  friend std::ostream& operator<<(std::ostream& out, const model_case& c) { return out << c.name; }
};

std::vector<model_case> cases() {
  std::vector<model_case> all;
  const auto add = [&](const char* name, auto&& change) {
    model_case c{name, 1000 + all.size(), quiet()};
    c.options.maintenance = false;  // what is pending changes only by the sequence's own calls
    c.options.oom_wait = std::chrono::milliseconds(5);
    change(c.options);
    all.push_back(c);
  };
  const auto nothing = [](config&) {};
  add("default_one", nothing);
  add("default_two", nothing);
  add("default_three", nothing);
  add("hardened", [](config& c) { c.hardened = true; });
  add("no_caches", [](config& c) { c.thread_cache = c.lane_cache = 0; });
  add("tiny_thread_cache", [](config& c) { c.thread_cache = 8192; });
  add("small_chunks", [](config& c) { c.chunk_size = 2 * mib; });
  add("limited", [](config& c) {
    c.limit = 96 * mib;
    c.chunk_size = 4 * mib;
  });
  return all;
}

class model : public testing::TestWithParam<model_case> {
 protected:
  struct interval {
    std::size_t bytes;  // of the block
    std::size_t asked;
    std::size_t lane;
    bool live;  // else pending
    bool aligned;
  };
  using intervals = std::map<std::uintptr_t, interval>;

  static constexpr int device_count = 2;

  model() : dice_(GetParam().seed) {
    const weir::pool p = rig_.service->make_pool("model");
    for (int d = 0; d < device_count; ++d) {
      const stream_t first = rig_.stream(d);
      lanes_.push_back(rig_.service->lane(d, first));
      lanes_.push_back(rig_.service->lane(d, rig_.stream(d)));
      lanes_.push_back(rig_.service->lane(d, first, p));
    }
  }
  ~model() override {
    for (const auto& [base, i] : reference_) {
      if (i.live) weir::deallocate(reinterpret_cast<void*>(base));
    }
    rig_.service->collect();
    lanes_.clear();
    rig_.finish();
  }

  std::size_t random_size() {
    switch (dice_.below(10)) {
      case 0:
        return dice_.below(3);  // zero too
      case 1:
      case 2:
        return mib + 1 + dice_.below(6u << 20);
      case 3:
        return 64 * kib * (1 + dice_.below(20)) + dice_.below(3) - 1;
      default:
        return 1 + (dice_.roll() & ((std::uint64_t{1} << dice_.below(20)) - 1));
    }
  }
  intervals::iterator random_block() {
    return std::next(reference_.begin(), dice_.below(static_cast<std::uint32_t>(reference_.size())));
  }
  // The interval that the address lies in, or the end.
  intervals::iterator covering(std::uintptr_t at) {
    auto i = reference_.upper_bound(at);
    if (i == reference_.begin()) return reference_.end();
    --i;
    return at < i->first + i->second.bytes ? i : reference_.end();
  }

  // Blocks whose wait is over leave the reference.
  void refresh_pending() {
    for (auto i = reference_.begin(); i != reference_.end();) {
      block_info found;
      const bool gone = !i->second.live && !(rig_.service->query(reinterpret_cast<void*>(i->first), found) &&
                                             !found.live && found.base == reinterpret_cast<void*>(i->first));
      i = gone ? reference_.erase(i) : std::next(i);
    }
  }

  void allocate() {
    const std::size_t lane = dice_.below(static_cast<std::uint32_t>(lanes_.size()));
    const std::size_t bytes = random_size();
    const std::size_t alignment = dice_.chance(8) ? std::size_t{1} << dice_.below(22) : default_alignment;
    void* p = lanes_[lane].try_allocate(bytes, alignment);
    if (bytes == 0) {
      ASSERT_EQ(p, nullptr);
      return;
    }
    if (p == nullptr) {
      ASSERT_NE(GetParam().options.limit, 0u) << bytes << " bytes were refused without a limit";
      return;
    }
    refresh_pending();  // the call may have collected, and the block may be one of them
    const auto at = reinterpret_cast<std::uintptr_t>(p);
    ASSERT_EQ(at % std::max(alignment, default_alignment), 0u);
    block_info found;
    ASSERT_TRUE(rig_.service->query(p, found));
    ASSERT_EQ(found.base, p);
    ASSERT_GE(found.bytes, bytes);
    ASSERT_TRUE(found.live);
    ASSERT_EQ(found.device, lanes_[lane].device());
    ASSERT_EQ(found.stream, lanes_[lane].stream());
    ASSERT_EQ(covering(at), reference_.end()) << "begins in another block";
    const auto next = reference_.lower_bound(at);
    ASSERT_TRUE(next == reference_.end() || at + found.bytes <= next->first) << "reaches into the next block";
    reference_[at] = {found.bytes, bytes, lane, true, alignment != default_alignment};
  }

  void deallocate() {
    if (reference_.empty()) return;
    const auto i = random_block();
    auto* p = reinterpret_cast<void*>(i->first);
    if (!i->second.live) {
      weir::deallocate(p);
      expect_misuse(misuse::kind::double_free);
      return;
    }
    const std::size_t own = i->second.lane;
    std::size_t freed_in = own;
    switch (dice_.below(4)) {
      case 0:
        weir::deallocate(p);
        break;
      case 1:
        freed_in = own / 3 * 3 + dice_.below(3);  // a lane of the same device
        lanes_[freed_in].deallocate(p);
        break;
      default:
        lanes_[own].deallocate(p);
    }
    if (freed_in == own) {
      reference_.erase(i);
    } else {
      i->second.live = false;
    }
  }

  void free_wrongly() {
    if (reference_.empty()) return;
    const auto i = random_block();
    const std::uintptr_t inside = i->first + 1 + dice_.roll() % (i->second.bytes - 1);
    weir::deallocate(reinterpret_cast<void*>(inside));
    expect_misuse(misuse::kind::interior_pointer);
  }

  void expect_misuse(misuse::kind what) {
    const auto heard = rig_.misuses();
    ASSERT_EQ(heard.size(), 1u);
    ASSERT_EQ(heard[0].what, what) << heard[0].text;
  }

  void look_up() {
    if (reference_.empty()) return;
    // Around a block: inside it, before it and behind it.
    const auto near = random_block();
    const std::uintptr_t at = near->first - 5000 + dice_.roll() % (near->second.bytes + 10000);
    const auto expected = covering(at);
    block_info found;
    const bool is_there = rig_.service->query(reinterpret_cast<void*>(at), found);
    ASSERT_EQ(is_there, expected != reference_.end()) << std::hex << at;
    if (!is_there) return;
    ASSERT_EQ(found.base, reinterpret_cast<void*>(expected->first));
    ASSERT_EQ(found.bytes, expected->second.bytes);
    ASSERT_EQ(found.live, expected->second.live);
  }

  void give_back() {
    switch (dice_.below(5)) {
      case 0:
        rig_.service->trim(static_cast<int>(dice_.below(device_count)), dice_.below(64u << 20));
        break;
      case 1:
        rig_.service->quiesced(static_cast<int>(dice_.below(device_count)));
        break;
      default:
        rig_.service->collect();
    }
    refresh_pending();
  }

  void compare() {
    refresh_pending();
    for (int d = 0; d < device_count; ++d) {
      std::uint64_t live = 0;
      std::uint64_t pending = 0;
      std::uint64_t asked = 0;
      std::uint64_t rounding = 0;
      for (const auto& [base, i] : reference_) {
        if (lanes_[i.lane].device() != d) continue;
        if (!i.live) {
          pending += i.bytes;
          continue;
        }
        live += i.bytes;
        asked += i.asked;
        // An aligned block may be of a much larger class than its size; its waste is then known only roughly.
        rounding += i.aligned || i.bytes == 256 ? i.bytes - i.asked : std::max<std::uint64_t>(1, i.bytes / 1024);
      }
      const device_statistics s = rig_.statistics(d);
      ASSERT_EQ(s.live, live);
      ASSERT_EQ(s.pending, pending);
      ASSERT_EQ(s.reserved, rig_.machine->reserved_bytes(d));
      ASSERT_EQ(sum_of_parts(s), s.reserved);
      ASSERT_GE(s.asked, asked);
      ASSERT_LE(s.asked, asked + rounding);
    }
  }

  rig rig_{GetParam().options, devices(device_count)};
  std::vector<weir::lane> lanes_;
  intervals reference_;
  heap::dice dice_;
};

TEST_P(model, every_step_agrees_with_the_reference) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr int steps = 1000;
#else
  constexpr int steps = 2500;
#endif
  std::uint32_t most = 60;  // blocks at one time: changes, so that memory fills and drains
  for (int step = 0; step < steps; ++step) {
    SCOPED_TRACE(step);
    if (dice_.chance(500)) most = 5 + dice_.below(120);
    const std::uint32_t what = dice_.below(100);
    if (what < 84) {
      if (dice_.below(2 * most) >= reference_.size()) {
        allocate();
      } else {
        deallocate();
      }
    } else if (what < 92) {
      look_up();
    } else if (what < 96) {
      free_wrongly();
    } else {
      give_back();
    }
    if (HasFatalFailure()) return;
    compare();
    if (HasFatalFailure()) return;
    ASSERT_EQ(step % 100 == 0 ? rig_.service->check() : std::string(), "");
  }
  EXPECT_THAT(rig_.misuses(), testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(sequences, model, testing::ValuesIn(cases()),
                         [](const auto& made) { return made.param.name; });

}  // namespace
}  // namespace weir::test
