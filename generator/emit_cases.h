// The cases of a bundle's self test: problems of several sizes, what the op's reference expects of their outputs, and
// the calls that must be served, refused, or take a certain pipeline (docs/use/emit.md).
#pragma once

#include <string>
#include <vector>

#include "generator/emit.h"
#include "generator/interface.h"
#include "generator/launch_code.h"

namespace roofgen {

inline constexpr const char* kCasesFile = "self_test_cases.h";

/// The text of kCasesFile. `conditions`: of each pipeline's kernels; `sizes`: of the shapes, in the order in which
/// their distances are compared.
Result<std::string> self_test_cases(const EmitRequest& request, const Interface& interface,
                                    const std::vector<std::vector<std::vector<LaunchCode::Condition>>>& conditions,
                                    const std::vector<std::string>& sizes);

}  // namespace roofgen
