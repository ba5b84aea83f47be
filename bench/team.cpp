#include "team.hpp"

#include <algorithm>
#include <exception>

namespace weir::bench {

team::team(std::size_t members, void (*thread_init)()) : ends_(members) {
  if (thread_init != nullptr) thread_init();
  for (std::size_t member = 1; member < members; ++member) {
    threads_.emplace_back([this, member, thread_init] { serve(member, thread_init); });
  }
}

team::~team() {
  stop_ = true;
  ++round_;
  round_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void team::fail(const std::string& why) {
  const std::lock_guard guard(failure_mutex_);
  if (failure_.empty()) failure_ = why;
  failed_ = true;
}

double team::run() {
  ready_ = 0;
  done_ = 0;
  const unsigned round = ++round_;
  round_.notify_all();
  // Sleepers wake at different times: the clock starts when all of them stand at the line.
  for (patience p; ready_.load() != threads_.size();) p.wait();
  start_ = clock::now();
  go_.store(round);
  take_part(0);
  for (patience p; done_.load() != ends_.size();) p.wait();
  const auto last =
      std::max_element(ends_.begin(), ends_.end(), [](const end& a, const end& b) { return a.at < b.at; });
  return std::chrono::duration<double>(last->at - start_).count();
}

void team::serve(std::size_t member, void (*thread_init)()) {
  if (thread_init != nullptr) thread_init();
  for (unsigned seen = 0;;) {
    round_.wait(seen);
    seen = round_.load();
    if (stop_) return;
    ++ready_;
    for (patience p; go_.load() != seen;) p.wait();
    take_part(member);
  }
}

void team::take_part(std::size_t member) {
  try {
    work_(argument_, member);
  } catch (const std::exception& fault) {
    fail(fault.what());
  }
  ends_[member].at = clock::now();
  ++done_;
}

}  // namespace weir::bench
