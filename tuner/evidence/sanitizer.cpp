#include "tuner/evidence/sanitizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/paths.h"
#include "base/subprocess.h"
#include "tuner/evidence/replay.h"

namespace roofgen {
namespace {

constexpr size_t kMostLines = 6;

/// A tool, and the simulator's findings (docs/use/findings.md) of the same meaning.
struct Tool {
  const char* name;
  std::vector<const char*> kinds;
};
const std::vector<Tool>& tools() {
  static const std::vector<Tool> table = {
      {"memcheck", {"out-of-bounds", "misaligned"}},
      {"racecheck", {"race", "async-pending"}},
      {"initcheck", {"uninitialised"}},
      {"synccheck", {"divergent-barrier", "bad-barrier", "bad-member-mask", "partial-warp"}}};
  return table;
}

/// The number right before `what` in `line`; nullopt: none.
std::optional<uint64_t> number_before(const std::string& line, const std::string& what) {
  const size_t at = line.find(what);
  if (at == std::string::npos || at == 0) return std::nullopt;
  size_t end = line.find_last_not_of(' ', at - 1);
  if (end == std::string::npos || !std::isdigit(static_cast<unsigned char>(line[end]))) return std::nullopt;
  size_t begin = end;
  while (begin > 0 && std::isdigit(static_cast<unsigned char>(line[begin - 1]))) --begin;
  uint64_t value = 0;
  if (std::from_chars(line.data() + begin, line.data() + end + 1, value).ec != std::errc()) return std::nullopt;
  return value;
}

/// The lines that begin with the tool's prefix, without the prefix.
std::vector<std::string> marked_lines(const std::string& text) {
  static const std::string kMark = "=========";
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (text.compare(at, kMark.size(), kMark) == 0) {
      std::string line = text.substr(at + kMark.size(), end - at - kMark.size());
      while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
      if (!line.empty() && line[0] == ' ') line.erase(0, 1);
      out.push_back(line.substr(0, 300));
    }
    at = end + 1;
  }
  return out;
}

}  // namespace

std::string SanitizerRow::agreement() const {
  if (state == State::kNotRun) return "unchecked";
  return (state == State::kClean) == simulator.empty() ? "confirmed" : "contradicted";
}

SanitizerRow parse_sanitizer(const std::string& tool, const std::string& output, int exit) {
  SanitizerRow row;
  row.tool = tool;
  bool summary = false;
  for (const std::string& line : marked_lines(output)) {
    // "ERROR SUMMARY: 3 errors", "INITCHECK SUMMARY: 1 error", "RACECHECK SUMMARY: 5 hazards displayed (4 errors, 1
    // warning)"; a second "ERROR SUMMARY: 69 errors were not printed" repeats a part of the first. "LEAK SUMMARY" does
    // not count.
    if (line.find(" SUMMARY:") != std::string::npos) {
      if (line.find("LEAK SUMMARY") != std::string::npos || line.find("were not printed") != std::string::npos)
        continue;
      const std::optional<uint64_t> errors = number_before(line, " error");
      if (!errors) continue;
      summary = true;
      row.errors = *errors;
      row.warnings = number_before(line, " warning").value_or(0);
      continue;
    }
    const bool detail = line.starts_with(" ") || line.empty();
    if (!detail && line != "COMPUTE-SANITIZER" && row.lines.size() < kMostLines) row.lines.push_back(line);
  }
  if (!summary) {
    row.why = !row.lines.empty() ? row.lines.front() : fmt::format("it ended with status {} and no summary", exit);
    row.lines.clear();
    return row;
  }
  if (row.errors == 0 && row.warnings == 0) {
    row.lines.clear();
    // No errors, because the program ended before its kernels.
    if (exit != 0) {
      row.why = "the kernels did not run under it";
      if (const std::string own = line_with(output, "roofgen: "); !own.empty()) row.why += ": " + own;
      return row;
    }
    row.state = SanitizerRow::State::kClean;
    return row;
  }
  row.state = SanitizerRow::State::kErrors;
  return row;
}

SanitizerReport sanitize(const SanitizerRequest& request) {
  SanitizerReport report;
  const std::string named = !request.sanitizer.empty() ? request.sanitizer : environment("ROOFGEN_SANITIZER");
  report.tool =
      find_program(named, "compute-sanitizer",
                   {"/usr/local/cuda/bin/compute-sanitizer", "/usr/local/cuda/compute-sanitizer/compute-sanitizer"});
  auto scratch = report.tool.empty()
                     ? Result<ScratchReplay>(
                           Error{Exit::kUnavailable, named.empty() ? "compute-sanitizer was not found"
                                                                   : named + " is not a program that can be run"})
                     : ScratchReplay::make(request.replay);
  if (!report.tool.empty())
    if (const auto version = run_process({.argv = {report.tool, "--version"},
                                          .environment = {{"LC_ALL", "C"}},
                                          .timeout_s = 30,
                                          .most_output = 1 << 16,
                                          .stop = request.stop}))
      report.version = line_with(version->out, "Version ");
  for (const Tool& tool : tools()) {
    SanitizerRow row;
    row.tool = tool.name;
    if (!scratch) {
      row.why = scratch.error().message;
    } else {
      const auto run = run_process(
          {.argv = {report.tool, "--tool", tool.name, "--print-limit", "10", replay_program(request.executable),
                    "__replay", scratch->directory(), "--gpu", std::to_string(request.gpu)},
           // Poisoning a buffer writes it: initcheck would then miss uninitialised reads.
           .environment = {{"LC_ALL", "C"}, {"ROOFGEN_POISON", std::string(tool.name) == "initcheck" ? "0" : "1"}},
           .timeout_s = request.timeout_s,
           .stop = request.stop});
      if (!run)
        row.why = run.error().message;
      else if (run->stopped)
        row.why = "interrupted";
      else if (run->timed_out)
        row.why = fmt::format("it did not end within {} s", request.timeout_s);
      else if (run->flooded)
        row.why = "it printed too much";
      else
        row = parse_sanitizer(tool.name, run->out + "\n" + run->err, run->signal != 0 ? 128 + run->signal : run->exit);
    }
    for (const Finding& f : request.findings)
      if (std::find(tool.kinds.begin(), tool.kinds.end(), f.kind) != tool.kinds.end() &&
          std::find(row.simulator.begin(), row.simulator.end(), f.kind) == row.simulator.end())
        row.simulator.push_back(f.kind);
    report.rows.push_back(std::move(row));
  }
  return report;
}

}  // namespace roofgen
