// Flags that an operator's formulas define: `--M 128 --b-dtype fp4 --causal`. Which exist is data
// (work/<op>.json), so they are read from what the command line parser leaves over.
#pragma once

#include "roofline/work.h"

namespace roofgen {

/// `--dim N`, `--dim=N`, `--flag`, `--no-flag`, `--<role>-dtype NAME`, and `name=value` pairs of --dims. Numbers may be
/// written 4096, 4k (x 1024) or 1e6. Unknown names: Exit::kUsage with the nearest one.
Result<WorkRequest> parse_work_flags(const WorkFormula& formula, const std::vector<std::string>& arguments);

/// A whole number as flags write it: 4096, 4k (x 1024), 1e6. `flag` is for the message.
Result<int64_t> parse_count(const std::string& flag, const std::string& text);

/// What `--help` says about an operator.
std::string work_help(const WorkFormula& formula);

}  // namespace roofgen
