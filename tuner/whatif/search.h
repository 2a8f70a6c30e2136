// The search of all what-ifs: tunes each part, composes the partitions, and verifies those that verdicts name.
#pragma once

#include <string>

#include "tuner/whatif/subject.h"
#include "tuner/whatif/whatif.h"

namespace roofgen {

/// `plan`: the name of a partition to compare with the best; may be empty. `title` and `problem` are for the report.
Result<WhatIfReport> search(const TuneResources& context, const Subject& subject, const std::string& title,
                            const Problem& problem, const std::string& plan, const TuneOptions& options);

}  // namespace roofgen
