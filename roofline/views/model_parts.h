// What the text and the page of a model have in common.
#pragma once

#include <string>
#include <vector>

#include "roofline/views/views.h"

namespace roofgen {

/// The phase of the runs; the view has at least one.
const ModelPhase& phase_of(const ModelView& view);

/// "80 % of each bandwidth, ...".
std::string assumed_text(const ModelRequest& request);

/// Where limits change, said where MEM and COMP are told by the datasheet's ridge; empty when that is the same.
std::string assumed_ridge_text(const ModelRun& run);

/// Of the model, then of its runs; each once.
std::vector<std::string> notes_of(const ModelView& view);

/// The longest first.
std::vector<const OperatorRun*> operators_by_time(const ModelRun& run);

plot::TableBlock operator_table(const ModelRun& run);
/// One row for each run.
plot::TableBlock sweep_table(const ModelView& view);

}  // namespace roofgen
