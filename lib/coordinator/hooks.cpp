#include "coordinator/hooks.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>

namespace weir::coordinator {

namespace {

using line = std::array<char, 512>;

std::string_view format_line(line& out, const char* format, std::va_list arguments) noexcept {
  const int n = std::vsnprintf(out.data(), out.size(), format, arguments);
  return {out.data(), static_cast<std::size_t>(std::clamp(n, 0, static_cast<int>(out.size()) - 1))};
}

// One write, so that lines of several threads stay whole; no lock of stdio.
void to_stderr(std::string_view text) noexcept {
  line whole;
  const int n = std::snprintf(whole.data(), whole.size(), "weir: %.*s\n", static_cast<int>(text.size()), text.data());
  const auto length = static_cast<std::size_t>(std::clamp(n, 0, static_cast<int>(whole.size()) - 1));
  if (length + 1 == whole.size()) whole[length - 1] = '\n';
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, whole.data(), length);
}

// A hook that throws must not end the free or allocation that called it.
template <class Function, class Argument>
void call(const Function& f, const Argument& a) noexcept {
  try {
    f(a);
  } catch (...) {
    to_stderr("a hook of the user threw an exception; it was ignored");
  }
}

// Enough for tests that make many services; the ones beyond it hear nothing of faults that belong to none.
constinit std::array<std::atomic<hooks*>, 64> listed = {};

}  // namespace

hooks* process_hooks() noexcept {
  for (const auto& h : listed) {
    if (hooks* found = h.load(std::memory_order_acquire)) return found;
  }
  return nullptr;
}

void list_hooks(hooks* h) noexcept {
  for (auto& place : listed) {
    hooks* none = nullptr;
    if (place.compare_exchange_strong(none, h, std::memory_order_acq_rel)) return;
  }
}

void unlist_hooks(hooks* h) noexcept {
  for (auto& place : listed) {
    hooks* mine = h;
    if (place.compare_exchange_strong(mine, nullptr, std::memory_order_acq_rel)) return;
  }
}

void hooks::say(log_level level, int device, const char* format, ...) noexcept {
  const service::event_hook* f = event.get();
  const log_level most = (f != nullptr ? event_level : stderr_level).load(std::memory_order_relaxed);
  if (level > most) return;
  line text;
  std::va_list arguments;
  va_start(arguments, format);
  const std::string_view said = format_line(text, format, arguments);
  va_end(arguments);
  if (f != nullptr) {
    call(*f, weir::event{level, device, said});
  } else {
    to_stderr(said);
  }
}

void hooks::report(misuse::kind what, const void* address, const char* format, ...) noexcept {
  misuses.fetch_add(1, std::memory_order_relaxed);
  line text;
  std::va_list arguments;
  va_start(arguments, format);
  const std::string_view said = format_line(text, format, arguments);
  va_end(arguments);
  if (const service::misuse_hook* f = misuse.get()) {
    call(*f, weir::misuse{what, address, said});
  } else {
    to_stderr(said);
  }
}

}  // namespace weir::coordinator
