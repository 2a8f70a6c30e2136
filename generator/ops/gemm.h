// C = epilogue(A B): dims M, N, K; buffers A [M, K], B [K, N], C [M, N] and the tensors that the epilogue reads.
// docs/gemm.md describes the options, docs/verification.md the tolerance.
#pragma once

#include "generator/ops/op.h"
#include "generator/pointwise/formula.h"

namespace roofgen {

const Op& gemm_op();

namespace gemm {

/// Elements of k per slab of split-K (fewer in the last). A multiple of every step along k, so that it does not depend
/// on the tile.
int64_t k_per_split(int64_t k, int64_t splits);

}  // namespace gemm
}  // namespace roofgen
