// The end of a tile of attention/fused.cu.jinja whose keys several warps or CTAs have seen. Merges the parts of the key
// warps of a CTA, and writes O, or this split's part of it.

constexpr int kPartPitch = D + 8;  // floats of a row of O between warps: eight lanes write to different banks

/// In shared memory, where Q, K and V were: O of each warp, undivided, and the maximum and the sum of each row.
struct Parts {
  float* o;       // [kWarpsN][BM][kPartPitch]
  float2* stats;  // [kWarpsN][BM]: maximum, sum
  __device__ __forceinline__ explicit Parts(unsigned char* shared)
      : o(reinterpret_cast<float*>(shared)), stats(reinterpret_cast<float2*>(o + kWarpsN * BM * kPartPitch)) {}
};

/// Leaves this warp's part. The copies into this memory are over.
__device__ __forceinline__ void leave_part(const Parts& parts, const Tile& tile, const Place& at, const State& state) {
  cp_async_wait<0>();
  __syncthreads();
#pragma unroll
  for (int i = 0; i < MT; ++i)
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = at.part * BM + at.row(i, h);
      const float sum = quad_sum(state.sum[i][h]);
      if (at.lane % 4 == 0) parts.stats[row] = make_float2(scaled_max(state.max[i][h], tile.scale_log2()), sum);
#pragma unroll
      for (int n = 0; n < D / 8; ++n)
        *reinterpret_cast<float2*>(parts.o + row * kPartPitch + 8 * n + at.lane % 4 * 2) =
            make_float2(state.o[i][n][2 * h], state.o[i][n][2 * h + 1]);
    }
  __syncthreads();
}

__device__ __forceinline__ void merge_parts(const Parts& parts, const Launch& launch, const Tile& tile, int thread) {
  // Eight columns of a row per thread and step.
  for (int piece = thread; piece < BM * (D / 8); piece += kThreads) {
    const int i = piece / (D / 8), column = piece % (D / 8) * 8;
    if (!tile.rows.used(i)) break;  // rows in use come first
    const int query = tile.rows.query(i), head = tile.rows.head(i);
    float top = parts.stats[i].x;
#pragma unroll
    for (int w = 1; w < kWarpsN; ++w) top = fmaxf(top, parts.stats[w * BM + i].x);
    float sum = 0.0f, out[8] = {};
#pragma unroll
    for (int w = 0; w < kWarpsN; ++w) {
      const float2 part = parts.stats[w * BM + i];
      const float factor = part.x == neg_inf() ? 0.0f : ex2(part.x - top);  // no visible key: no part
      sum += factor * part.y;
      const float* from = parts.o + (w * BM + i) * kPartPitch + column;
#pragma unroll
      for (int c = 0; c < 8; ++c) out[c] += factor * from[c];
    }
    const bool empty = sum == 0.0f;  // no key allowed: O = 0, LSE = -inf
    float inverse = empty ? 0.0f : rcp_approx(sum);
    if constexpr (kScalesV) inverse *= tile.v_scale;
    const float log_sum = empty ? neg_inf() : top + log2_approx(sum);
#pragma unroll
    for (int c = 0; c < 8; ++c) out[c] *= inverse;
    const long long row = tile.row_index(head, query);
    if constexpr (kSplit) {
      const long long part = row * launch.splits + tile.split;
      if (column == 0) launch.partial_lse[part] = log_sum;
      float4* const to = reinterpret_cast<float4*>(launch.partial_o + part * D + column);
      to[0] = make_float4(out[0], out[1], out[2], out[3]);
      to[1] = make_float4(out[4], out[5], out[6], out[7]);
    } else {
      if (kWriteLse && column == 0) launch.lse[row] = log_sum * kLn2;
      *reinterpret_cast<uint4*>(tile.output(launch, head, query) + column) =
          make_uint4(pack2<Half>(out[0], out[1]), pack2<Half>(out[2], out[3]), pack2<Half>(out[4], out[5]),
                     pack2<Half>(out[6], out[7]));
    }
  }
}
