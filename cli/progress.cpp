#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "cli/cli.h"

namespace roofgen::cli {

using Clock = std::chrono::steady_clock;

Progress::Progress() : terminal_(isatty(2)), started_(Clock::now()) {}

Progress::~Progress() {
  if (shown_) fmt::print(stderr, "\r\x1b[K");
}

void Progress::show(const char* phase, uint64_t done, uint64_t total) {
  const auto now = Clock::now();
  if (!terminal_ || total == 0 || (shown_ && now - last_ < std::chrono::milliseconds(100))) return;
  last_ = now;
  shown_ = true;
  done = std::min(done, total);
  constexpr uint64_t kWidth = 30;
  const uint64_t filled = kWidth * done / total;
  const double elapsed = std::chrono::duration<double>(now - started_).count();
  const std::string left =
      done == 0
          ? ""
          : fmt::format("  {:.0f} s left", elapsed / static_cast<double>(done) * static_cast<double>(total - done));
  fmt::print(stderr, "\r\x1b[K{} [{}{}] {}/{}{}", phase, std::string(filled, '#'), std::string(kWidth - filled, '.'),
             done, total, left);
  std::fflush(stderr);
}

}  // namespace roofgen::cli
