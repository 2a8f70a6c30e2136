// C = epilogue(A B): dims M, N, K; buffers A [M, K], B [K, N], C [M, N] and the tensors that the epilogue reads.
// docs/kernels/gemm.md describes the options, docs/internals/verification.md the tolerance.
#pragma once

#include "generator/ops/op.h"
#include "generator/pointwise/formula.h"

namespace roofgen {

const Op& gemm_op();
/// C[m,:] = epilogue(A[m,:] B of the expert of row m): dims M, N, K, experts, and the text sizes; buffers A [M, K]
/// sorted by expert, B [experts, N, K], offsets [experts + 1] (int32: the first row of each expert, and M after them),
/// C [M, N]. A tensor [n] of the epilogue is [experts, N].
const Op& grouped_gemm_op();

namespace gemm {

/// Elements of k per slab of split-K (fewer in the last). A multiple of every step along k, so that it does not depend
/// on the tile.
int64_t k_per_split(int64_t k, int64_t splits);

}  // namespace gemm
}  // namespace roofgen
