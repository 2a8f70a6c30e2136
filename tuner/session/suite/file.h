// A suite: problems that one run tunes, as a JSON file (docs/use/suite.md).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "roofgen/result.h"

namespace roofgen {

/// Flags of `roofgen tune` with their values; a switch has none, a repeated flag several.
using FlagValues = std::vector<std::pair<std::string, std::vector<std::string>>>;

struct SuiteProblem {
  std::string op;
  FlagValues flags;  ///< those of "common" that the problem does not have itself come last
  Where at;
  std::vector<std::string> excerpt;  ///< the place as lines under an error
};

/// Reads {"schema": "roofgen.suite.1", "common": {"evals": 16}, "problems": [{"op": "gemm", "M": 4096, ...}]}. A member
/// is a flag without its hyphens: true is a switch, false or null leaves it out, a list of numbers is joined by commas,
/// a list of strings repeats the flag. Errors: file:line:col.
Result<std::vector<SuiteProblem>> read_suite(std::string text, std::string file);
/// Reads the lines that programs wrote under ROOFGEN_CAPTURE: problems with a "count" of launches. Equal ones are one,
/// those with the most launches come first.
Result<std::vector<SuiteProblem>> read_captured(const std::string& text, const std::string& file);
/// One such problem by itself: {"op": "gemm", "M": 4096, ...}.
Result<SuiteProblem> read_problem(std::string text, std::string file);

/// The error at the place of the problem.
Error at(const SuiteProblem& problem, Error error);

/// "--L 2048 --epilogue 'gelu(acc)'", as for a shell.
std::string shell_words(const FlagValues& flags);

/// The part `index` of `count` of a suite's problems, as "2/8" gives it: of each `count` problems one.
struct Shard {
  size_t index = 1, count = 1;
  bool has(size_t problem) const { return problem % count == index - 1; }
};
Result<Shard> parse_shard(const std::string& text);

}  // namespace roofgen
