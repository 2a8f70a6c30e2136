// Checks of --arg for ops with elements [m,n]. Attention's tensors have other indices, in any order.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "roofgen/pipeline.h"
#include "roofgen/result.h"

namespace roofgen {

/// Exit::kUsage for a tensor with the name of one of the op's `own`, because buffers are identified by name, and with a
/// caret for two indices other than [m,n], because kernels read its rows along rows of the output.
Result<void> check_declared(const std::vector<TensorArg>& declared, std::string_view op,
                            const std::vector<std::string>& own);

}  // namespace roofgen
