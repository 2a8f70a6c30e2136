// Ops over the rows of an [rows, cols] matrix x: rmsnorm, layernorm, softmax, and map (any expression of each element).
// One class; a table in rows_formulas.cpp has the differences.
#pragma once

#include "generator/ops/op.h"

namespace roofgen {

const Op& rmsnorm_op();
const Op& layernorm_op();
const Op& softmax_op();
const Op& map_op();

}  // namespace roofgen
