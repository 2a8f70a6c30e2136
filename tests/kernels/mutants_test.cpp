// Every mutant of templates/*/*.mutants must be caught: by a finding of the simulator, or by the comparison with a wide
// margin.
#include "tests/support/mutants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <set>

#include "cli/problem_flags.h"
#include "generator/ops/attention_parts.h"
#include "tests/kernels/expect_caught.h"

namespace roofgen::test::mutants_test {
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

struct MutantRun {
  Request request;
  std::unique_ptr<const Op> part;  ///< where the request has no op of the product
};

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

class Mutants : public testing::TestWithParam<Mutant> {};

TEST_P(Mutants, AreCaught) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  const Mutant& m = GetParam();
  const auto made = run_of(m);
  ASSERT_TRUE(made) << to_string(made.error());
  expect_caught(run(made->request), m.fate, m.margin);
}

INSTANTIATE_TEST_SUITE_P(Templates, Mutants, testing::ValuesIn(mutants_below("templates")),
                         [](const auto& test) { return test.param.name; });

/// Otherwise a mutant could be caught for another reason than its bug.
class WithoutBugs : public testing::TestWithParam<Mutant> {};

TEST_P(WithoutBugs, AreRight) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  auto made = run_of(GetParam());
  ASSERT_TRUE(made) << to_string(made.error());
  made->request.edits.clear();
  const auto runs = run(made->request);
  ASSERT_TRUE(runs) << to_string(runs.error());
  EXPECT_EQ(what_is_wrong(*runs), "");
}

/// A mutant of each run.
std::vector<Mutant> runs() {
  std::vector<Mutant> out;
  std::set<std::string> seen;
  for (Mutant& m : mutants_below("templates"))
    if (seen.insert(m.run).second) out.push_back(std::move(m));
  return out;
}

INSTANTIATE_TEST_SUITE_P(Templates, WithoutBugs, testing::ValuesIn(runs()),
                         [](const auto& test) { return test.param.name; });

TEST(MutantFiles, AreWellFormed) { expect_mutants_well_formed("templates"); }

TEST(MutantFiles, AWrongLineIsAnError) {
  const auto error_of = [](const std::string& text) {
    const std::filesystem::path file = testing::TempDir() + "/wrong.mutants";
    std::ofstream(file) << text;
    const auto read = read_mutants(file);
    std::filesystem::remove(file);
    return read ? "" : to_string(read.error());
  };
  EXPECT_EQ(error_of("finding: bug\n  in a\n  - b\n  + c\n"), "");
  EXPECT_THAT(error_of("comparision: bug\n"), testing::HasSubstr("wrong.mutants:1:1: error: run, margin, or finding"));
  EXPECT_THAT(error_of("either: bug\n  - a\n"), testing::HasSubstr(":2:1: error: with, because or in was expected"));
  EXPECT_THAT(error_of("either: bug\n\neither: other\n  in a\n  - a\n"),
              testing::HasSubstr(":1:1: error: a bug has edits"));
}

}  // namespace
}  // namespace roofgen::test::mutants_test
