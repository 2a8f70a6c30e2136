// C = epilogue(A B): dims M, N, K; buffers A [M, K], B [K, N], C [M, N] and the tensors that the epilogue reads.
// docs/gemm.md says what a user may ask for, docs/verification.md what counts as right.
#pragma once

#include "generator/ops/op.h"
#include "generator/pointwise/formula.h"

namespace roofgen {

const Op& gemm_op();

namespace gemm {

/// The slabs of split-K: partial products over this many elements of k each (the last has fewer). A multiple of every
/// step along k, so that it does not depend on the tile.
int64_t k_per_split(int64_t k, int64_t splits);

}  // namespace gemm
}  // namespace roofgen
