// Parts shared by the text and the page of a model.
#pragma once

#include <string>
#include <vector>

#include "roofline/views/views.h"

namespace roofgen {

/// The phase of the runs; the view needs at least one run.
const ModelPhase& phase_of(const ModelView& view);

/// "80 % of each bandwidth, ...".
std::string assumed_text(const ModelRequest& request);

/// States the ridge under the request's efficiencies, next to MEM and COMP labels that use the datasheet's ridge; empty
/// when both ridges are equal.
std::string assumed_ridge_text(const ModelRun& run);

/// The model's notes, then the runs' notes, without duplicates.
std::vector<std::string> notes_of(const ModelView& view);

/// Longest first.
std::vector<const OperatorRun*> operators_by_time(const ModelRun& run);

plot::TableBlock operator_table(const ModelRun& run);
/// One row per run.
plot::TableBlock sweep_table(const ModelView& view);

}  // namespace roofgen
