// What --arg declares, for ops whose elements are [m,n]: attention's tensors have other indices and any order of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "roofgen/pipeline.h"
#include "roofgen/result.h"

namespace roofgen {

/// Exit::kUsage for a tensor that is called like one of the op's `own`, because buffers are known by their names; with
/// a caret for one of two indices that are not [m,n], because kernels read a row of it along a row of the output.
Result<void> check_declared(const std::vector<TensorArg>& declared, std::string_view op,
                            const std::vector<std::string>& own);

}  // namespace roofgen
