// The end of a tile of rows whose keys one warp of each row has seen: O and LSE from its registers.

/// Staged in shared memory, in a tile of the kernel's Layout: this warp's rows at `stage`, which no other warp uses.
template <class Layout>
__device__ __forceinline__ void store_output(const Launch& launch, const Tile& tile, const Place& at,
                                             const State& state, unsigned stage) {
  float inverse[MT][2];
#pragma unroll
  for (int i = 0; i < MT; ++i)
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float sum = quad_sum(state.sum[i][h]);
      const bool empty = kMayBeEmpty && sum == 0.0f;  // no key allowed: O = 0, LSE = -inf
      inverse[i][h] = empty ? 0.0f : rcp_approx(sum);
      if constexpr (kScalesV) inverse[i][h] *= tile.v_scale;
      if constexpr (kWriteLse) {
        const int row = at.row(i, h);
        const float log_sum = log_of_sum(state.max[i][h], tile.scale_log2(), log2_approx(sum));
        if (at.lane % 4 == 0 && tile.rows.used(row))
          launch.lse[tile.row_index(tile.rows.head(row), tile.rows.query(row))] = empty ? neg_inf() : log_sum;
      }
    }
  stage_tile<Half, Layout>(state.o, inverse, stage, at.lane);
  __syncwarp();
  const Tensor<Half> o{launch.o, launch.o_batch_stride, launch.o_row_stride, launch.o_head_stride};
  tile.rows.template store<Layout, kWarpRows>(stage, at.warp_row, reinterpret_cast<char*>(tile.rows_of(o)),
                                              o.row_stride, o.head_stride, at.lane);
}
