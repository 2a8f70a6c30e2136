// What mutants of generated code run.
#pragma once

#include <memory>

#include "generator/ops/op.h"
#include "tests/kernels/run_kernel.h"

namespace roofgen::test {

struct MutantRun {
  Request request;
  std::unique_ptr<const Op> part;  ///< where the request has no op of the product
};

/// "attention --L 256 --d 64 --variant fused": what such a line of a file runs.
Result<MutantRun> run_of(const std::string& line);
/// What a mutant runs, with its edits.
Result<MutantRun> run_of(const Mutant& mutant);

/// A mutant of each run of templates/*/*.mutants.
std::vector<Mutant> different_runs();

}  // namespace roofgen::test
