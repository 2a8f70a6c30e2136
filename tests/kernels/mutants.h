// Mutants of generated kernels, each with one planted bug that a check must catch: files *.mutants beside the templates
// (docs/mutants.md tells their format).
#pragma once

#include <filesystem>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "generator/ops/op.h"
#include "tests/kernels/expect_caught.h"

namespace roofgen::test {

struct Mutant {
  Where where;       ///< of its first line
  std::string bug;   ///< "stages released too early"
  std::string name;  ///< of the file and the bug: "gemm_warpgroup_stages_released_too_early"
  CaughtBy by = CaughtBy::kEither;
  double least = 1;  ///< tolerances that the comparison must be off by
  std::string run;   ///< the arguments of the run: the problem, a variant, a schedule
  std::vector<Edit> edits;
};
void PrintTo(const Mutant& mutant, std::ostream* out);

/// Errors: a line that is none of the format, with its place.
Result<std::vector<Mutant>> read_mutants(const std::filesystem::path& file);

struct MutantRun {
  Request request;
  std::unique_ptr<const Op> part;  ///< where the request has no op of the product
};
/// What a mutant runs, with its edits.
Result<MutantRun> run_of(const Mutant& mutant);

}  // namespace roofgen::test
