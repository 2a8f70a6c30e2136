#pragma once

#include "cli/cli.h"
#include "tuner/session/suite.h"

namespace roofgen::cli {

/// Tunes and prints. Exit::kFailed if a problem failed, Exit::kBelowScore if one is below `min_score`.
Result<Exit> show_suite(const Terminal& terminal, const SuiteRequest& request, double min_score, bool json);

}  // namespace roofgen::cli
