// Row reductions of gemm/epilogue.cuh.jinja, and pairs of elements of its tensors. The kernel defines its constants.

/// Elements p[0] and p[second]. kPairs: the two are neighbours and aligned.
template <class Element>
__device__ __forceinline__ void load_pair(const Element* p, int second, float (&x)[2]) {
  if constexpr (kPairs)
    load_as<Element, 2>(p, x);
  else
    x[0] = load_as(p), x[1] = load_as(p + second);
}

/// Joins the parts of rows, each of the columns of a lane, over all lanes and warps of a tile. Warps of the same rows
/// exchange their parts in shared memory; all join them in the same order. `rows`: of this lane.
template <class Join, class Sync>
__device__ __forceinline__ void join_rows(float (&part)[MT][2], float* rows, int warp, int lane, float start,
                                          const Join& join, const Sync& sync) {
#pragma unroll
  for (int i = 0; i < MT; ++i)
#pragma unroll
    for (int h = 0; h < 2; ++h) {
#pragma unroll
      for (int step = 1; step < 4; step *= 2)
        part[i][h] = join(part[i][h], __shfl_xor_sync(kAllLanes, part[i][h], step));
      if (lane % 4 == 0) rows[(kTileRows * i + 8 * h) * kWarpsN + warp % kWarpsN] = part[i][h];
    }
  sync();
#pragma unroll
  for (int i = 0; i < MT; ++i)
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float total = start;
#pragma unroll
      for (int w = 0; w < kWarpsN; ++w) total = join(total, rows[(kTileRows * i + 8 * h) * kWarpsN + w]);
      part[i][h] = total;
    }
}
