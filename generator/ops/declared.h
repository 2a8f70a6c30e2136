// What users declare in text: --arg of ops with elements [m,n] (attention's tensors have other indices, in any order),
// and lists of numbers.
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

/// "512,1024,33" of the flag `flag`, each number from `low` to `high`. Exit::kUsage with a caret at the first that is
/// not; `noun` is what one number is: "length".
Result<std::vector<int64_t>> parse_numbers(const std::string& flag, const std::string& text, const std::string& noun,
                                           int64_t low, int64_t high);

}  // namespace roofgen
