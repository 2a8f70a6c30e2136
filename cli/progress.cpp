#include "cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/json.h"
#include "base/output_file.h"

namespace roofgen::cli {
namespace {

using namespace std::chrono_literals;

constexpr size_t kWidestBar = 30, kNarrowestBar = 8;
constexpr auto kRedraw = 100ms;  // at most; phases may tick thousands of times a second
constexpr std::chrono::seconds kTick = 1s, kFirstLine = 2s, kLine = 10s;
constexpr double kShortest = 2;  // seconds

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// {"tune attention": {"verifying": 12.3}}; a file that is none is as good as none.
std::string phases_file(const std::string& home) { return home + "/phases.json"; }

Json all_kept(const std::string& home) {
  const auto text = home.empty() ? Result<std::string>(Error{}) : read_input(phases_file(home));
  if (!text) return Json::object();
  const auto file = JsonFile::parse(*text, phases_file(home));
  return file && file->root().is_object() ? file->root() : Json::object();
}

PhaseTimes kept_phases(const std::string& home, const std::string& kind) {
  PhaseTimes out;
  const Json all = all_kept(home), &one = all.contains(kind) ? all[kind] : all;
  if (all.contains(kind) && one.is_object())
    for (const auto& [name, seconds] : one.items())
      if (seconds.is_number()) out.emplace_back(name, seconds.get<double>());
  return out;
}

void keep_phases(const std::string& home, const std::string& kind, const PhaseTimes& run) {
  Json all = all_kept(home), one = Json::object();
  for (const auto& [name, seconds] : run) one[name] = std::round(seconds * 10) / 10;
  all[kind] = std::move(one);
  if (!home.empty() && make_directory(home)) (void)write_output(phases_file(home), json_document(all));
}

size_t columns_of_stderr() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

std::string progress_text(const Phase& p) {
  if (p.total == 0) return p.name;
  std::string out = fmt::format("{}: {} of {}", p.name, p.done, p.total);
  if (p.done > p.done_first && p.seconds >= 1) {
    const double here = p.seconds / static_cast<double>(p.done - p.done_first) * static_cast<double>(p.total - p.done);
    if (here + p.later_seconds > 0) out += fmt::format(", {:.0f} s left", here + p.later_seconds);
  }
  return out;
}

double seconds_after(const PhaseTimes& earlier, const PhaseTimes& run) {
  double before = 0, now = 0, after = 0;
  for (const auto& [name, seconds] : earlier) {
    const auto same = std::ranges::find(run, name, &PhaseTimes::value_type::first);
    if (same == run.end()) {
      after += seconds;
    } else if (same + 1 != run.end()) {
      before += seconds;
      now += same->second;
    }
  }
  return before > kShortest && now > kShortest ? after * now / before : after;
}

std::string progress_bar(const Phase& p, size_t columns) {
  const std::string text = progress_text(p);
  constexpr size_t kFrame = 3;  // [] and a space
  if (text.size() + kNarrowestBar + kFrame >= columns) return text.substr(0, columns - 1);
  const size_t width = std::min(kWidestBar, columns - 1 - kFrame - text.size());
  const size_t filled = width * p.done / std::max<uint64_t>(p.total, 1);
  return fmt::format("[{}{}] {}", std::string(filled, '#'), std::string(width - filled, '.'), text);
}

Progress::Progress(const Session& session, std::string kind)
    : session_(session), kind_(std::move(kind)), terminal_(isatty(STDERR_FILENO)), last_(Clock::now()) {
  earlier_ = kept_phases(session_.home, kind_);
  begin(phase_.name, 0);
  clock_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    auto period = terminal_ ? kTick : kFirstLine;
    while (!ended_.wait_for(lock, period, [this] { return ending_; })) {
      draw();
      period = terminal_ ? kTick : kLine;
    }
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
  keep();
}

void Progress::begin(const std::string& phase, uint64_t done) {
  if (!run_.empty()) run_.back().second += seconds_since(began_);
  phase_ = {.name = phase, .done_first = done};
  began_ = Clock::now();
  // A phase that comes again is the last one now.
  const auto known = std::ranges::find(run_, phase, &PhaseTimes::value_type::first);
  if (known == run_.end())
    run_.emplace_back(phase, 0);
  else
    std::rotate(known, known + 1, run_.end());
}

/// Of a run that came to its end, and took long enough to be worth a forecast.
void Progress::keep() const {
  PhaseTimes run = run_;
  run.back().second += seconds_since(began_);
  double all = 0;
  for (const auto& [name, seconds] : run) all += seconds;
  const bool whole = !(session_.stop && *session_.stop) && run.size() > 1;
  if (whole && all > kShortest) keep_phases(session_.home, kind_, run);
}

void Progress::show(const char* phase, uint64_t done, uint64_t total) {
  if (total == 0) return;
  const std::lock_guard lock(mutex_);
  if (phase_.name != phase || done < phase_.done) begin(phase, done);
  phase_.done = std::min(done, total);
  phase_.total = total;
  if (terminal_ && (!drawn_ || Clock::now() - last_ >= kRedraw)) draw();
}

void Progress::draw() {
  last_ = Clock::now();
  drawn_ = true;
  phase_.seconds = seconds_since(began_);
  phase_.later_seconds = seconds_after(earlier_, run_);
  if (terminal_)
    fmt::print(stderr, "\r\x1b[K{}", progress_bar(phase_, columns_of_stderr()));
  else
    fmt::print(stderr, "roofgen: {}\n", progress_text(phase_));
  std::fflush(stderr);
}

}  // namespace roofgen::cli
