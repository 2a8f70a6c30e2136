// The search that all what-ifs share: the parts one by one, then the partitions made of them, then those that verdicts
// name run whole.
#pragma once

#include <string>

#include "tuner/whatif/subject.h"
#include "tuner/whatif/whatif.h"

namespace roofgen {

/// `plan`: the name of a partition that is compared with the best; may be empty. `title` and `problem` are for the
/// report.
Result<WhatIfReport> search(const WhatIfContext& context, const Subject& subject, const std::string& title,
                            const Problem& problem, const std::string& plan, const TuneOptions& options);

}  // namespace roofgen
