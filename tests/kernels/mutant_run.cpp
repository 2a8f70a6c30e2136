#include "tests/kernels/mutant_run.h"

#include <set>

#include "generator/ops/attention_parts.h"
#include "tuner/session/request.h"

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

Result<Part> part_of(const Problem& problem, const std::string& name) {
  const size_t count = attention_steps(problem).size();
  for (size_t begin = 0; begin < count; ++begin)
    for (size_t end = begin + 1; end <= count; ++end)
      if (const Part part{begin, end}; attention_part_name(problem, part) == name) return part;
  return Error{Exit::kFailed, "no steps " + name};
}

}  // namespace

Result<MutantRun> run_of(const std::string& text) {
  MutantRun out;
  Request& request = out.request;
  ProblemFlags flags;
  std::string steps;
  CommandLine line("mutant", "", "");
  const FlagSet app = line.add_command("run", "");
  flags.declare(app);
  app.add("--variant", request.variant, "");
  app.add("--steps", steps, "");  // of attention, as one kernel: mask+softmax
  app.add("--sms", request.sms, "");
  app.add("--order", request.order, "");
  app.add_switch("--dependent", request.dependent, "");
  std::vector<std::string> words = words_of(text);
  words.insert(words.begin(), {"mutant", "run"});
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  ROOFGEN_CHECK(line.parse(static_cast<int>(argv.size()), argv.data()));
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
  return out;
}

Result<MutantRun> run_of(const Mutant& mutant) {
  ROOFGEN_TRY(MutantRun out, run_of(mutant.run));
  out.request.edits = mutant.edits;
  return out;
}

std::vector<Mutant> different_runs() {
  std::vector<Mutant> out;
  std::set<std::string> seen;
  for (Mutant& m : mutants_below("templates"))
    if (seen.insert(m.run).second) out.push_back(std::move(m));
  return out;
}

}  // namespace roofgen::test
