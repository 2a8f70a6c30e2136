#include "runtime/compile/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "runtime/compiler.h"

namespace roofgen {
namespace {

constexpr size_t kMaxErrors = 5;  // shown per compilation; further errors are only counted
constexpr size_t kMaxLineLength = 400;

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

bool starts_with(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }
bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

std::optional<int64_t> number(std::string_view text) {
  int64_t value = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The number right before `label`: 132 in "..., 132 bytes spill loads" for " bytes spill loads".
int64_t number_before(std::string_view line, std::string_view label) {
  size_t at = line.find(label);
  if (at == std::string_view::npos) return 0;
  size_t start = at;
  while (start > 0 && line[start - 1] >= '0' && line[start - 1] <= '9') --start;
  return number(line.substr(start, at - start)).value_or(0);
}

/// The text between the first pair of single quotes.
std::string_view quoted(std::string_view line) {
  size_t open = line.find('\'');
  if (open == std::string_view::npos) return {};
  size_t close = line.find('\'', open + 1);
  return close == std::string_view::npos ? std::string_view() : line.substr(open + 1, close - open - 1);
}

bool is_advisory(std::string_view line) {
  if (!starts_with(line, "ptxas")) return false;
  return starts_with(line, "ptxas warning") || contains(line, "(C7");
}

/// `file(12): error: text`, `file(12): error #20: text`, `file(12): catastrophic error: text`.
std::optional<Diagnostic> parse_diagnostic(std::string_view line) {
  size_t mark = line.find("): ");
  if (mark == std::string_view::npos) return std::nullopt;
  size_t open = line.rfind('(', mark);
  if (open == std::string_view::npos || open == 0) return std::nullopt;
  auto at = number(line.substr(open + 1, mark - open - 1));
  if (!at || *at < 0 || *at > INT32_MAX) return std::nullopt;
  std::string_view rest = line.substr(mark + 3);
  if (starts_with(rest, "catastrophic ")) rest.remove_prefix(13);
  if (starts_with(rest, "internal ")) rest.remove_prefix(9);
  if (!starts_with(rest, "error")) return std::nullopt;
  size_t colon = rest.find(": ");
  if (colon == std::string_view::npos) return std::nullopt;
  return Diagnostic{std::string(line.substr(0, open)),
                    static_cast<int>(*at),
                    std::string(trim(rest.substr(colon + 2)).substr(0, kMaxLineLength)),
                    {}};
}

/// `ptxas application ptx input, line 29; error   : text` or `ptxas error   : text`.
std::optional<Diagnostic> parse_ptxas_error(std::string_view line) {
  if (!starts_with(line, "ptxas")) return std::nullopt;
  size_t at = line.find("error ");
  if (at == std::string_view::npos || starts_with(line, "ptxas info") || starts_with(line, "ptxas warning"))
    return std::nullopt;
  size_t colon = line.find(": ", at);
  if (colon == std::string_view::npos) return std::nullopt;
  Diagnostic out;
  out.file = "ptx";
  if (size_t mark = line.find(", line "); mark != std::string_view::npos && mark < at) {
    std::string_view digits = line.substr(mark + 7, line.find(';', mark) - mark - 7);
    out.line = static_cast<int>(number(digits).value_or(0));
  }
  out.message = "ptxas: " + std::string(trim(line.substr(colon + 2)).substr(0, kMaxLineLength));
  return out;
}

/// The source line of a PTX line: the last `.loc` before it. For inlined code this is the innermost location.
int source_line_of_ptx(std::string_view ptx, int ptx_line) {
  int found = 0, at = 0;
  for (std::string_view line : split_lines(ptx)) {
    if (++at > ptx_line) break;
    line = trim(line);
    if (starts_with(line, ".visible") || starts_with(line, ".func") || starts_with(line, ".entry")) found = 0;
    if (!starts_with(line, ".loc")) continue;
    line = trim(line.substr(4));
    line = trim(line.substr(std::min(line.find_first_of(" \t"), line.size())));  // skips the file index
    found = static_cast<int>(number(line.substr(0, line.find_first_of(" \t"))).value_or(0));
  }
  return found;
}

Where source_position(const Diagnostic& error, const CompileReply& reply, const Program& program) {
  Where at{error.file, error.line, 0};
  if (error.file == "ptx") {
    int line = source_line_of_ptx(reply.ptx, error.line);
    if (error.line == 0 || line == 0) return {};
    at = {kSourceName, line, 0};
  }
  if (at.file != kSourceName) {  // a #line directive already refers to the template or a header
    if (error.excerpt.size() == 2)
      if (const size_t caret = error.excerpt[1].find('^'); caret != std::string::npos && caret >= 2)
        at.col = static_cast<int>(caret) - 1;
    return at;
  }
  const auto& map = program.line_map.lines;
  if (at.line >= 1 && static_cast<size_t>(at.line) <= map.size() && !map[at.line - 1].file.empty())
    return map[at.line - 1];
  return at;
}

/// A failure without a diagnostic: options, memory, or a defect of NVRTC.
Error unexplained_error(const CompileReply& reply, const Program& program) {
  // With -v, ptxas omits its message about static shared memory (seen in 13.0 and 13.5).
  int64_t smem = parse_ptxas_log(reply.log, program.entry).static_smem_bytes;
  if (smem > kMostStaticSmem)
    return {Exit::kFailed,
            fmt::format("static shared memory: {} > {} bytes; beyond that it must be dynamic", smem, kMostStaticSmem)};
  std::string_view reason;  // a line that says so; else the first that is no information
  for (std::string_view line : split_lines(reply.log)) {
    const bool says = line.find("fatal") != line.npos || line.find(" error") != line.npos;
    if (!says && (starts_with(line, "ptxas info") || starts_with(line, "ptxas  ") || trim(line).empty())) continue;
    if (says || reason.empty()) reason = trim(line).substr(0, kMaxLineLength);
    if (says) break;
  }
  if (!reason.empty()) return {Exit::kFailed, fmt::format("NVRTC failed: {}: {}", reply.status_name, reason)};
  return {Exit::kFailed, fmt::format("NVRTC failed: {}, without a reason", reply.status_name)};
}

std::string position_text(const Where& at) {
  if (at.file.empty()) return "";
  if (at.line && at.col) return fmt::format("{}:{}:{}: ", at.file, at.line, at.col);
  return at.line ? fmt::format("{}:{}: ", at.file, at.line) : at.file + ": ";
}

}  // namespace

std::vector<Diagnostic> parse_errors(std::string_view log) {
  std::vector<Diagnostic> errors;
  bool in_excerpt = false;
  for (std::string_view line : split_lines(log)) {
    if (auto diagnostic = parse_diagnostic(line)) {
      errors.push_back(std::move(*diagnostic));
      in_excerpt = true;
      continue;
    }
    if (auto diagnostic = parse_ptxas_error(line)) {
      errors.push_back(std::move(*diagnostic));
      in_excerpt = false;
      continue;
    }
    // The source line and its caret follow, indented by two. Deeper "detected during" contexts stay in the full log
    // only.
    in_excerpt = in_excerpt && starts_with(line, "  ");
    if (in_excerpt && errors.back().excerpt.size() < 2)
      errors.back().excerpt.emplace_back(line.substr(0, kMaxLineLength));
  }
  return errors;
}

PtxasReport parse_ptxas_log(std::string_view log, std::string_view entry) {
  PtxasReport report;
  // ptxas prints "Compiling entry function 'k' for 'sm_90'"; then, for the entry and each called function, "Function
  // properties for f" and a line with stack and spills; then "Used N registers".
  bool ours = false;
  for (std::string_view line : split_lines(log)) {
    if (is_advisory(line)) report.advisories.emplace_back(line);
    if (contains(line, "Compiling entry function")) ours = quoted(line) == entry;
    if (!ours) continue;
    if (contains(line, "bytes stack frame")) {
      report.stack_bytes += number_before(line, " bytes stack frame");
      report.spill_bytes += number_before(line, " bytes spill stores") + number_before(line, " bytes spill loads");
    }
    if (contains(line, ": Used ")) {
      report.found = true;
      report.registers = static_cast<int>(number_before(line, " registers"));
      report.static_smem_bytes = number_before(line, " bytes smem");
      ours = false;
    }
  }
  return report;
}

int most_threads(int registers) {
  constexpr int kSchedulers = 4, kRegisters = 16384, kUnit = 256, kWarp = 32, kMostThreads = 1024;
  const int of_warp = std::max(1, (registers * kWarp + kUnit - 1) / kUnit) * kUnit;
  return std::min(kMostThreads, kRegisters / of_warp * kSchedulers * kWarp);
}

std::optional<std::string> undone_by_ptxas(const Binary& binary) {
  // Codes that ptxas 13.0 was seen to print: setmaxnreg ignored; wgmma serialised for lack of registers, for
  // accumulators that are not in registers, or for accumulators read or written in flight; a wait added before wgmma.
  constexpr std::string_view kCodes[] = {"(C7508)", "(C7510)", "(C7511)", "(C7514)", "(C7515)", "(C7517)"};
  for (const std::string& advisory : binary.advisories)
    for (const std::string_view code : kCodes)
      if (contains(advisory, code)) return advisory;
  return std::nullopt;
}

std::string stable_log(std::string_view log) {
  std::string out;
  for (std::string_view line : split_lines(log)) {
    if (starts_with(line, "ptxas info") && contains(line, "Compile time =")) continue;
    out.append(line);
    out += '\n';
  }
  return out;
}

Error compile_error(const CompileReply& reply, const Program& program) {
  std::vector<Diagnostic> errors = parse_errors(reply.log);
  if (errors.empty()) return unexplained_error(reply, program);
  Error error{Exit::kFailed, errors[0].message};
  error.where = source_position(errors[0], reply, program);
  for (size_t i = 0; i < errors.size() && i < kMaxErrors; ++i) {
    const Diagnostic& each = errors[i];
    if (i > 0) error.notes.push_back(position_text(source_position(each, reply, program)) + "error: " + each.message);
    if (!each.excerpt.empty() && each.file == kSourceName)
      error.notes.push_back(fmt::format("in the generated source, {}:{}:", each.file, each.line));
    error.notes.insert(error.notes.end(), each.excerpt.begin(), each.excerpt.end());
  }
  if (errors.size() > kMaxErrors) error.notes.push_back(fmt::format("and {} more errors", errors.size() - kMaxErrors));
  return error;
}

}  // namespace roofgen
