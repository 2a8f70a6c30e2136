// A lane's rows in an attention kernel by mma: their State before any key, and what they may see.

/// No keys so far.
__device__ __forceinline__ void clear(State& state) {
#pragma unroll
  for (int i = 0; i < MT; ++i)
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      state.max[i][h] = neg_inf();
      state.sum[i][h] = 0.0f;
#pragma unroll
      for (int n = 0; n < D / 8; ++n) state.o[i][n][2 * h] = state.o[i][n][2 * h + 1] = 0.0f;
    }
}

/// The keys that a lane's rows may see, and their part of the score expression and the mask.
struct LaneRows {
  int limit[MT][2];  // the last key
  ModifiedRows modified;
  __device__ __forceinline__ LaneRows(const Tile& tile, const Place& at) : modified(tile, at) {
#pragma unroll
    for (int i = 0; i < MT; ++i)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        limit[i][h] = tile.kv_len - 1;
        if constexpr (kCausal) limit[i][h] = min(limit[i][h], tile.rows.query(at.row(i, h)) + tile.lead);
      }
  }
};
