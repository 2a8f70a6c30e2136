#include "tests/kernels/mutants.h"

#include <fmt/format.h>

#include <fstream>
#include <ostream>

#include "cli/problem_flags.h"
#include "generator/ops/attention_parts.h"

namespace roofgen::test {
namespace {

/// Words between blanks; single quotes keep blanks.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> out;
  bool quoted = false, open = false;
  for (const char c : text) {
    if (c == '\'') {
      quoted = !quoted;
    } else if (c == ' ' && !quoted) {
      open = false;
      continue;
    }
    if (!open) out.emplace_back();
    open = true;
    if (c != '\'') out.back() += c;
  }
  return out;
}

std::string name_of(const std::filesystem::path& file, const std::string& bug) {
  std::string out = file.parent_path().filename().string() + "_" + file.stem().string() + "_" + bug;
  for (char& c : out)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return out;
}

/// Takes `word` and a blank off the front of a line.
bool begins(std::string& line, std::string_view word) {
  if (line != word && !line.starts_with(std::string(word) + " ")) return false;
  line.erase(0, std::min(word.size() + 1, line.size()));
  return true;
}

class Reader {
 public:
  explicit Reader(const std::filesystem::path& file) : file_(file) {}

  Result<std::vector<Mutant>> read() {
    std::ifstream in(file_);
    for (std::string line; std::getline(in, line);) {
      ++at_.line;
      if (line.empty() || line[0] == '#') continue;
      if (auto read = line.starts_with("  ") ? part(line.substr(2)) : heading(line); !read) return read.error();
    }
    for (const Mutant& m : out_)
      if (m.edits.empty()) return Error{Exit::kFailed, "a mutant without an edit: " + m.bug, m.where};
    if (out_.empty()) return Error{Exit::kFailed, "no mutants", at_};
    return std::move(out_);
  }

 private:
  Result<void> heading(std::string line) {
    run_is_open_ = begins(line, "run");
    if (run_is_open_) {
      run_ = line;
      return {};
    }
    if (begins(line, "margin")) {
      least_ = std::stod(line);
      return {};
    }
    const size_t colon = line.find(": ");
    const std::string by = line.substr(0, colon);
    if (colon == std::string::npos || (by != "finding" && by != "comparison" && by != "either"))
      return unknown("run, margin, or finding, comparison or either with a colon", line);
    Mutant& m = out_.emplace_back();
    m.where = at_;
    m.bug = line.substr(colon + 2);
    m.name = name_of(file_, m.bug);
    m.by = by == "finding" ? CaughtBy::kFinding : by == "comparison" ? CaughtBy::kComparison : CaughtBy::kEither;
    m.least = least_;
    m.run = run_;
    return {};
  }

  Result<void> part(std::string line) {
    if (run_is_open_ && begins(line, " ")) {
      run_ += " " + line;
      return {};
    }
    if (out_.empty()) return unknown("a mutant's first line", line);
    Mutant& m = out_.back();
    if (begins(line, "run")) {
      m.run = line;
    } else if (begins(line, "with")) {
      m.run += " " + line;
    } else if (begins(line, "in")) {
      m.edits.push_back({line, "", ""});
    } else if (m.edits.empty()) {
      return unknown("run, with or in", line);
    } else {
      const bool from = begins(line, "-"), to = !from && begins(line, "+");
      if (!from && !to && !line.starts_with("  ")) return unknown("-, + or two blanks before code", line);
      const auto add = [&](std::string& text) { text += (text.empty() ? "" : "\n") + line; };
      if (!to) add(m.edits.back().from);
      if (!from) add(m.edits.back().to);
    }
    return {};
  }

  Error unknown(const std::string& expected, const std::string& line) const {
    return {Exit::kFailed, fmt::format("{} was expected, not \"{}\"", expected, line), at_};
  }

  const std::filesystem::path file_;
  Where at_{file_.string(), 0, 1};
  std::string run_;
  bool run_is_open_ = false;  // lines may go on with it
  double least_ = 1;
  std::vector<Mutant> out_;
};

Result<Part> part_of(const Problem& problem, const std::string& name) {
  const size_t count = attention_steps(problem).size();
  for (size_t begin = 0; begin < count; ++begin)
    for (size_t end = begin + 1; end <= count; ++end)
      if (const Part part{begin, end}; attention_part_name(problem, part) == name) return part;
  return Error{Exit::kFailed, "no steps " + name};
}

}  // namespace

void PrintTo(const Mutant& m, std::ostream* out) { *out << m.where.file << ":" << m.where.line << ": " << m.bug; }

Result<std::vector<Mutant>> read_mutants(const std::filesystem::path& file) { return Reader(file).read(); }

Result<MutantRun> run_of(const Mutant& mutant) {
  MutantRun out;
  Request& request = out.request;
  cli::ProblemFlags flags;
  std::string steps;
  cli::CommandLine line("mutant", "", "");
  const cli::FlagSet app = line.add_command("run", "");
  flags.declare(app);
  app.add("--variant", request.variant, "");
  app.add("--steps", steps, "");  // of attention, as one kernel: mask+softmax
  app.add("--sms", request.sms, "");
  app.add("--order", request.order, "");
  app.add_switch("--dependent", request.dependent, "");
  std::vector<std::string> words = words_of(mutant.run);
  words.insert(words.begin(), {"mutant", "run"});
  ROOFGEN_CHECK(line.parse(std::move(words)));
  ROOFGEN_TRY(Problem problem, flags.problem());
  ROOFGEN_TRY(const Op* op, find_op(flags.op));
  ROOFGEN_TRY(request.problem, op->complete(std::move(problem)));
  if (!steps.empty()) {
    ROOFGEN_TRY(const Part part, part_of(request.problem, steps));
    auto kernel = std::make_unique<const AttentionParts>(request.problem, std::vector{part});
    request.problem = kernel->problem_of(request.problem);
    request.variant = steps;
    request.op = kernel.get();
    out.part = std::move(kernel);
  }
  ROOFGEN_TRY(const Pins pins, flags.pins());
  for (const auto& [name, value] : pins) {  // "pv.BK": of the stage pv, "BK": of the first
    const size_t point = name.find('.');
    const bool of_stage = point != std::string::npos;
    request.pins[of_stage ? name.substr(0, point) : ""][of_stage ? name.substr(point + 1) : name] = value;
  }
  request.edits = mutant.edits;
  return out;
}

}  // namespace roofgen::test
