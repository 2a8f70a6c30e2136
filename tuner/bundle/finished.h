// The result of a finished search in the store: `emit` takes it from there, without planning the search again
// (docs/store.md).
#pragma once

#include <optional>
#include <string>

#include "tuner/bundle/manifest.h"
#include "tuner/tune.h"

namespace roofgen {

/// The facts of a result that another run with the same store repeats, as EmittedPipeline::evidence.
std::string evidence(const TuneReport& report);

/// The build of this program, which is part of the key of a finished search.
std::string finished_version();

/// Keeps the winner, if the search has come to its end and its result depends on no clock.
void note_finished(const TuneContext& context, const Problem& problem, const TuneOptions& options,
                   const TuneResult& result);

/// The result of the last search with the same problem, options, device, compiler and program.
std::optional<Manifest> recall_finished(const TuneContext& context, const Problem& problem, const TuneOptions& options);

}  // namespace roofgen
