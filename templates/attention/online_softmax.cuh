// Softmax over a sequence of score tiles, and the product with V, for kernels that never hold a whole row. The kernel
// defines D, WN (keys of a warp per step), MT (m16 tiles per warp), Half, kLazyRescale and exponential().

/// With lazy rescaling the running maximum may be too small by up to this exponent. p <= 2^8 is in the range of every
/// type, and the final division removes the factor exactly.
constexpr float kMaxLag = 8.0f;

/// One lane's part of the rows of its warp; row h of m-tile i is i * 16 + h * 8 + lane / 4.
struct State {
  float o[MT][D / 8][4];
  float s[MT][WN / 8][4];
  float max[MT][2];  // of the unscaled scores
  float sum[MT][2];  // of this lane's columns only; the quad is summed at the end
};

/// Sets scores of keys after `limit` (the last key of each row) to -inf; `key` is this lane's first key.
__device__ __forceinline__ void mask_scores(State& state, int key, const int (&limit)[MT][2]) {
#pragma unroll
  for (int i = 0; i < MT; ++i)
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int last = limit[i][h] - key;
#pragma unroll
      for (int n = 0; n < WN / 8; ++n) {
        if (8 * n > last) state.s[i][n][2 * h] = neg_inf();
        if (8 * n + 1 > last) state.s[i][n][2 * h + 1] = neg_inf();
      }
    }
}

/// Turns scores into probabilities relative to the running maximum. kMasked: a row may have had no visible key so far;
/// its maximum is then -inf.
template <bool kMasked>
__device__ __forceinline__ void online_softmax(State& state, float c) {
  float next[MT][2];
#pragma unroll
  for (int i = 0; i < MT; ++i)
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float row_max = larger(state.s[i][0][2 * h], state.s[i][0][2 * h + 1]);
#pragma unroll
      for (int n = 1; n < WN / 8; ++n)
        row_max = larger(row_max, larger(state.s[i][n][2 * h], state.s[i][n][2 * h + 1]));
      row_max = quad_max(row_max);
      next[i][h] = larger(state.max[i][h], row_max);
    }
  bool rescale = !kLazyRescale;
  if constexpr (kLazyRescale) {
#pragma unroll
    for (int i = 0; i < MT; ++i)
#pragma unroll
      for (int h = 0; h < 2; ++h) rescale |= exceeds((next[i][h] - state.max[i][h]) * c, kMaxLag);
    rescale = __any_sync(kAllLanes, rescale);
  }
  if (rescale) {
#pragma unroll
    for (int i = 0; i < MT; ++i)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const float reference = kMasked && next[i][h] == neg_inf() ? 0.0f : next[i][h];
        const float factor = ex2((state.max[i][h] - reference) * c);
        state.max[i][h] = next[i][h];
        state.sum[i][h] *= factor;
#pragma unroll
        for (int n = 0; n < D / 8; ++n) {
          state.o[i][n][2 * h] *= factor;
          state.o[i][n][2 * h + 1] *= factor;
        }
      }
  }
#pragma unroll
  for (int i = 0; i < MT; ++i)
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const Exponents exponents = Exponents::of<kMasked>(state.max[i][h], c);
#pragma unroll
      for (int n = 0; n < WN / 8; ++n)
#pragma unroll
        for (int e = 2 * h; e < 2 * h + 2; ++e) {
          state.s[i][n][e] = exponential(exponents(state.s[i][n][e]), 2 * n + e % 2);
          state.sum[i][h] += state.s[i][n][e];
        }
    }
}

/// P and V are of type T.
template <class T, class VBlocks>
__device__ __forceinline__ void multiply_values(State& state, const VBlocks& v_blocks, unsigned stage) {
  static_for<WN / 16>([&](auto step) {
    constexpr int kStep = decltype(step)::value;
    unsigned p[MT][4];
#pragma unroll
    for (int i = 0; i < MT; ++i)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float(&tile)[4] = state.s[i][2 * kStep + e / 2];
        p[i][e] = pack2<T>(tile[e % 2 * 2], tile[e % 2 * 2 + 1]);
      }
    static_for<D / 16>([&](auto pair) {
      constexpr int kPair = decltype(pair)::value;
      unsigned v[4];
      v_blocks.template load_transposed<16 * kStep, kPair>(v, stage);
#pragma unroll
      for (int i = 0; i < MT; ++i) {
        mma_m16n8k16<T>(state.o[i][2 * kPair], p[i], v[0], v[1]);
        mma_m16n8k16<T>(state.o[i][2 * kPair + 1], p[i], v[2], v[3]);
      }
    });
  });
}
