#include "cli/faults.hpp"

#include "cli/errors.hpp"

namespace weir::cli {

void fault_list::add(const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (texts_.size() < most_texts) texts_.push_back(one_line(text));
  count_.fetch_add(1, std::memory_order_release);
}

std::vector<std::string> fault_list::texts() const {
  const std::lock_guard lock(mutex_);
  return texts_;
}

}  // namespace weir::cli
