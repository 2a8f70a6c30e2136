#include "cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace roofgen::cli {
namespace {

using namespace std::chrono_literals;

constexpr size_t kWidestBar = 30, kNarrowestBar = 8;
constexpr auto kRedraw = 100ms;  // at most; phases may tick thousands of times a second

size_t columns_of_stderr() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

std::string progress_text(const Phase& p) {
  std::string out = fmt::format("{}: {} of {}", p.name, p.done, p.total);
  if (p.done > p.done_first && p.done < p.total && p.seconds >= 1)
    out += fmt::format(", {:.0f} s left",
                       p.seconds / static_cast<double>(p.done - p.done_first) * static_cast<double>(p.total - p.done));
  return out;
}

std::string progress_bar(const Phase& p, size_t columns) {
  const std::string text = progress_text(p);
  constexpr size_t kFrame = 3;  // [] and a space
  if (text.size() + kNarrowestBar + kFrame >= columns) return text.substr(0, columns - 1);
  const size_t width = std::min(kWidestBar, columns - 1 - kFrame - text.size());
  const size_t filled = width * p.done / std::max<uint64_t>(p.total, 1);
  return fmt::format("[{}{}] {}", std::string(filled, '#'), std::string(width - filled, '.'), text);
}

Progress::Progress(const Session& session) : session_(session), terminal_(isatty(STDERR_FILENO)), last_(Clock::now()) {
  if (session_.progress) return;
  clock_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    const auto period = terminal_ ? 1s : 10s;
    while (!ended_.wait_for(lock, period, [this] { return ending_; }))
      if (!phase_.name.empty()) draw();
  });
}

Progress::~Progress() {
  if (!clock_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  ended_.notify_one();
  clock_.join();
  if (terminal_ && drawn_) fmt::print(stderr, "\r\x1b[K");
}

void Progress::show(const char* phase, uint64_t done, uint64_t total) {
  if (session_.progress) return session_.progress(phase, done, total);
  if (total == 0) return;
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  if (phase_.name != phase || done < phase_.done) {
    phase_ = {phase, 0, 0, 0, done};
    began_ = now;
  }
  phase_.done = std::min(done, total);
  phase_.total = total;
  if (terminal_ && (!drawn_ || now - last_ >= kRedraw)) draw();
}

void Progress::draw() {
  last_ = Clock::now();
  drawn_ = true;
  phase_.seconds = std::chrono::duration<double>(last_ - began_).count();
  if (terminal_)
    fmt::print(stderr, "\r\x1b[K{}", progress_bar(phase_, columns_of_stderr()));
  else
    session_.err("roofgen: " + progress_text(phase_) + "\n");
  std::fflush(stderr);
}

}  // namespace roofgen::cli
