// Template -> NVRTC -> simulator -> comparison, for tests: every stage of a variant at one schedule each,
// the whole grid of a (small) problem, every head compared with the reference.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "generator/generate.h"
#include "runtime/compiler.h"
#include "runtime/executor.h"

namespace roofgen::test {

using Pins = std::map<std::string, ParamValue>;

/// One change to a template's text. `from` must occur in it exactly once.
struct Edit {
  std::string file;  ///< "attention/fused.cu.jinja"
  std::string from, to;
};

struct Request {
  Problem problem;  ///< completed by the op
  std::string variant = "fused";
  std::map<std::string, Pins> pins;  ///< stage name -> parameters; the rest is the default schedule
  InputPattern pattern = InputPattern::kNormal;
  std::vector<Edit> edits;
  bool keep_bytes = false;  ///< of the outputs, in StageRun::bytes
  const Op* op = nullptr;   ///< nullptr: the one of that name
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

/// False, after skipping the calling test, when this machine has no NVRTC.
bool have_nvrtc();

/// Runs the stages in order and stops after one with findings. Problems of the machinery itself are
/// errors; a wrong kernel is findings or a failed comparison.
Result<std::vector<StageRun>> run(const Request& request);

/// One line on why a run is not right: its first finding or failed comparison; empty if all is well.
std::string what_is_wrong(const std::vector<StageRun>& runs);

Problem attention(std::map<std::string, int64_t> dims, std::map<std::string, bool> flags = {},
                  DType dtype = DType::kBf16);

}  // namespace roofgen::test
