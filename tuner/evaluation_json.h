// An Evaluation as the text a store row holds.
#pragma once

#include <optional>
#include <string>

#include "tuner/verify.h"

namespace roofgen {

/// Changes whenever the simulator, the checks or the payload change what a row means.
inline constexpr const char* kEvaluationVersion = "2";

std::string to_payload(const Evaluation& evaluation);
/// nullopt when the text is not a payload of this version: the row is then evaluated again.
std::optional<Evaluation> from_payload(const std::string& text);

}  // namespace roofgen
