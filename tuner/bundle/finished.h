// The result of a finished search in the store: `tune` and `emit` take it from there, without planning the search again
// (docs/use/store.md).
#pragma once

#include <optional>
#include <string>

#include "base/json_fwd.h"
#include "tuner/bundle/manifest.h"
#include "tuner/dispatch/family.h"
#include "tuner/tune.h"

namespace roofgen {

/// The facts of a result that another run with the same store repeats; EmittedPipeline::evidence is its text.
Json evidence(const TuneReport& report);

/// The build of this program, which is part of the key of a finished search.
std::string finished_version();

/// Keep the winner, or the kernels of a family, if the result depends on no clock and the search has ended.
void note_finished(const TuneContext& context, const Problem& problem, const TuneOptions& options,
                   const TuneResult& result);
void note_finished(const TuneContext& context, const std::vector<Problem>& problems, const TuneOptions& options,
                   double within, const FamilyResult& result);

/// The kernels of the last search with the same problems, options, device, compiler and program. `within`: of a family.
std::optional<Manifest> recall_finished(const TuneContext& context, const std::vector<Problem>& problems,
                                        const TuneOptions& options, double within = 0);
/// Its report, without what saved_report() leaves out: nothing was compiled or executed now.
std::optional<TuneReport> recall_report(const TuneContext& context, const Problem& problem, const TuneOptions& options);

}  // namespace roofgen
