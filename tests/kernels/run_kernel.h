// Template -> NVRTC -> simulator -> comparison, for tests: every stage of a variant with one schedule each, the whole
// grid of a (small) problem, every head compared with the reference.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/compiler.h"
#include "runtime/executor.h"
#include "tests/kernels/programs.h"

namespace roofgen::test {

struct Request {
  Problem problem;                   ///< completed by the op
  std::string variant = "fused";     ///< of a variant with instances any: "split7"
  std::map<std::string, Pins> pins;  ///< of a stage, "" the first: parameters; the rest is the default schedule
  InputPattern pattern = InputPattern::kNormal;
  std::vector<Edit> edits;
  bool keep_bytes = false;  ///< keeps the outputs in StageRun::bytes
  int launches = 1;         ///< of each kernel, all but temporaries that must stay zero unwritten before each
  uint64_t order = 0;       ///< of CTAs and warps: RunOptions::schedule
  int64_t sms = 132;        ///< of the device
  const Op* op = nullptr;   ///< nullptr: the op named by the problem
  int64_t arch = 90;        ///< or 89
  bool dependent = false;   ///< kernels behind the first are dependent launches
};

struct StageRun {
  std::string stage;
  Schedule schedule;
  Binary binary;
  Counts counts;
  std::vector<Finding> findings;
  Comparison comparison;                                ///< over all rows of all heads
  std::map<std::string, std::vector<std::byte>> bytes;  ///< of each output after this stage
};

/// A stage's schedule and its machine code.
struct Compiled {
  Legal legal;
  Binary binary;
};

/// Skips the calling test and returns false when this machine has no NVRTC.
bool have_nvrtc();

Result<Variant> variant_of(const Request& request);

/// Compiles the stages, and runs none.
Result<std::vector<Compiled>> compile(const Request& request);

/// Runs the stages in order and stops after a stage with findings. Infrastructure failures are Errors; a wrong kernel
/// yields findings or a failed comparison.
Result<std::vector<StageRun>> run(const Request& request);

/// Runs all kernels of the variant: no finding, no spill, and outputs within the tolerance. Skips the calling test when
/// this machine has no NVRTC.
void expect_right(const Request& request);

/// The first finding or failed comparison in one line; empty for a correct run.
std::string what_is_wrong(const std::vector<StageRun>& runs);

Problem attention(std::map<std::string, int64_t> dims, std::map<std::string, bool> flags = {},
                  DType dtype = DType::kBf16);

}  // namespace roofgen::test
