// One schedule without a search: its source, and what NVRTC makes of it.
#pragma once

#include <string>
#include <vector>

#include "tuner/session/request.h"
#include "tuner/session/session.h"
#include "tuner/tune.h"

namespace roofgen {

struct GenerateRequest {
  ProblemFlags problem;
  std::string variant, stage;  ///< empty: the first
  bool compile = false, list = false;
  void declare(FlagSet app);
};

struct Generated {
  std::string text;                  ///< CUDA C++; PTX of a request to compile; the list of variants and stages
  std::vector<TunedKernel> kernels;  ///< one, whose binary is empty unless it was compiled; of a list none
};

/// Exit::kUnavailable for a schedule that is not legal.
Result<Generated> generate(const Session& session, const GenerateRequest& request);

}  // namespace roofgen
