// Behind a split's part: the last CTA of a tile to arrive merges the parts of all splits. It reads its own part again,
// because equal bits need one order of the splits, whichever CTA is last. Nothing else runs then: many loads are under
// way at once, because each takes a trip to L2. Needs lib/arrival.cuh; the kernel defines BM, D, Half and kWriteLse.

/// For kThreads threads, with sync() as their barrier. `rows`: of the tile, with used(i), query(i), head(i). In
/// shared memory are `before`, and `stats`, one of each row.
template <int kThreads, class Rows, class Sync>
__device__ __forceinline__ void merge_splits(const Launch& launch, const Tile& tile, const Rows& rows, int thread,
                                             unsigned* before, float2* stats, const Sync& sync) {
  const int warp = thread / 32, lane = thread % 32, splits = launch.splits;
  sync();
  const unsigned last = splits - 1;
  const long long counter = (static_cast<long long>(tile.batch) * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  if (thread == 0) *before = arrive(launch.arrivals + counter, last);
  sync();
  if (*before != last) return;
  // A row per warp: the weights' reference, and one over their sum.
  for (int i = warp; i < BM; i += kThreads / 32) {
    if (!rows.used(i)) break;
    const long long row = tile.row_index(rows.head(i), rows.query(i));
    const float* logs = launch.partial_lse + row * splits;
    float top = neg_inf(), sum = 0.0f;
#pragma unroll 4
    for (int s = lane; s < splits; s += 32) top = fmaxf(top, logs[s]);
    top = warp_max(top);
    const float reference = top == neg_inf() ? 0.0f : top;  // no split saw a key
#pragma unroll 4
    for (int s = lane; s < splits; s += 32) sum += ex2(logs[s] - reference);
    sum = warp_sum(sum);
    if (lane == 0) {
      stats[i] = make_float2(reference, sum == 0.0f ? 0.0f : rcp_approx(sum));
      if (kWriteLse) launch.lse[row] = sum == 0.0f ? neg_inf() : (top + log2_approx(sum)) * kLn2;
    }
  }
  sync();
  // Four columns of a row per thread and step.
  for (int piece = thread; piece < BM * (D / 4); piece += kThreads) {
    const int i = piece / (D / 4), column = piece % (D / 4) * 4;
    if (!rows.used(i)) break;
    const int query = rows.query(i), head = rows.head(i);
    const long long row = tile.row_index(head, query);
    const float* logs = launch.partial_lse + row * splits;
    const float* from = launch.partial_o + row * splits * D + column;
    const float2 weights = stats[i];
    float out[4] = {};
#pragma unroll 16
    for (int s = 0; s < splits; ++s) {
      const float weight = ex2(logs[s] - weights.x);
      const float4 x = *reinterpret_cast<const float4*>(from + s * D);
      out[0] += weight * x.x;
      out[1] += weight * x.y;
      out[2] += weight * x.z;
      out[3] += weight * x.w;
    }
    *reinterpret_cast<uint2*>(tile.output(launch, head, query) + column) = make_uint2(
        pack2<Half>(out[0] * weights.y, out[1] * weights.y), pack2<Half>(out[2] * weights.y, out[3] * weights.y));
  }
}
