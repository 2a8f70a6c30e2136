// The product S = Q K^T of a warp of attention/fused.cu.jinja. P V is in online_softmax.cuh.

/// The operands in shared memory, where this warp reads them.
struct Operands {
  BlockLoader<SmemTile, false> q;
  BlockLoader<SmemTile, true> k;
  BlockLoader<SmemTile, false> v;
  unsigned q_fragments[MT][D / 16][4];

  __device__ __forceinline__ Operands(unsigned sm_q, unsigned sm_tiles, const Place& at)
      : q(sm_q + at.warp_row * SmemTile::kPitch, at.lane),
        k(sm_tiles + at.warp_col * SmemTile::kPitch, at.lane),
        v(sm_tiles + at.warp_col * SmemTile::kPitch + kMultipliedBytes, at.lane) {
    if constexpr (kQInRegisters)
      static_for<MT>([&](auto tile) {
        static_for<D / 16>([&](auto step) {
          constexpr int i = decltype(tile)::value, kStep = decltype(step)::value;
          q.template load<16 * i, kStep>(q_fragments[i][kStep], 0);
        });
      });
  }
};

/// S = Q K^T of the tile in `stage`.
__device__ __forceinline__ void multiply_scores(State& state, const Operands& from, unsigned stage) {
#pragma unroll
  for (int i = 0; i < MT; ++i)
#pragma unroll
    for (int n = 0; n < WN / 8; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) state.s[i][n][e] = 0.0f;
  static_for<D / 16>([&](auto step) {
    constexpr int kStep = decltype(step)::value;
    unsigned q[MT][4];
    static_for<MT>([&](auto tile) {
      constexpr int i = decltype(tile)::value;
      if constexpr (kQInRegisters) {
#pragma unroll
        for (int e = 0; e < 4; ++e) q[i][e] = from.q_fragments[i][kStep][e];
      } else {
        from.q.template load<16 * i, kStep>(q[i], 0);
      }
    });
    static_for<WN / 16>([&](auto pair) {
      constexpr int kPair = decltype(pair)::value;
      unsigned k[4];
      from.k.template load<16 * kPair, kStep>(k, stage);
#pragma unroll
      for (int i = 0; i < MT; ++i) {
        mma_m16n8k16<Half>(state.s[i][2 * kPair], q[i], k[0], k[1]);
        mma_m16n8k16<Half>(state.s[i][2 * kPair + 1], q[i], k[2], k[3]);
      }
    });
  });
}
