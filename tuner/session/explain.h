// An operator by its formula: work, roofs, regime and the next lever (docs/use/explain.md).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tuner/session/profile_flags.h"
#include "tuner/session/request.h"
#include "tuner/session/session.h"

namespace roofgen {

struct ExplainRequest {
  std::string op;          ///< empty or "list": the operators are listed
  std::string expression;  ///< of elementwise
  std::string device = kDefaultDevice, dtype, math_dtype, acc_dtype, ceilings = "datasheet";
  std::vector<std::string> dims;
  double softmax_flops = 0;
  std::string html;  ///< a page goes here; empty: none
  bool json = false;
  ProfileFlags profile;
  std::function<std::vector<std::string>()> rest;  ///< flags of the operator, which its formula defines
  void declare(FlagSet app);
};

/// The explanation as text or JSON, or what there is to ask for. Empty where only the page was asked for.
Result<std::string> explain(const Session& session, const ExplainRequest& request);

}  // namespace roofgen
