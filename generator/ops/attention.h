// Attention forward: O = softmax(scale * Q K^T) V. Tensors are [batch, row, head, d], densely packed.
#pragma once

#include "generator/ops/op.h"

namespace roofgen {

const Op& attention_op();

}  // namespace roofgen
