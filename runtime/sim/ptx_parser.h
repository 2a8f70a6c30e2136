// PTX text to PtxModule. Strict and bounded: unknown text is an Error with its line,
// and text, nesting and element counts have limits, because PTX may come from anywhere.
#pragma once

#include <string_view>

#include "roofgen/result.h"
#include "runtime/sim/ptx_ast.h"

namespace roofgen::sim {

inline constexpr size_t kMaxPtxBytes = size_t{64} << 20;
inline constexpr size_t kMaxStatements = size_t{4} << 20;
inline constexpr int kMaxNesting = 64;
inline constexpr uint64_t kMaxVarBytes = uint64_t{64} << 20;
inline constexpr uint64_t kMaxRegisterIndex = uint64_t{1} << 30;

/// `text` must outlive the result. Errors name `file` and the PTX line.
Result<PtxModule> parse_ptx(std::string_view text, const std::string& file);

}  // namespace roofgen::sim
