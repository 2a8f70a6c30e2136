// The reference of every stage of a row op, computed from the inputs.
#pragma once

#include "generator/ops/formula_reference.h"
#include "generator/ops/rows_formulas.h"
#include "generator/ops/rows_inputs.h"

namespace roofgen::rows {

SourceContents source_contents(const Spec& spec, const Problem& problem, InputPattern pattern);

Result<Comparison> compare(const Spec& spec, const Problem& problem, InputPattern pattern, const std::string& variant,
                           const std::string& stage, const Region& region, const ElementReader& read);

}  // namespace roofgen::rows
