// What a warpgroup of attention/warpgroup.cu.jinja that multiplies does with its stages of Q, K and V.

__device__ __forceinline__ void clear(float (&o)[D / 8][4]) {
#pragma unroll
  for (int n = 0; n < D / 8; ++n)
#pragma unroll
    for (int e = 0; e < 4; ++e) o[n][e] = 0.0f;
}

/// A warpgroup's places in the rings, and its rows of Q.
struct Consumer {
  unsigned smem;
  const Barriers& at;
  int index, warp, lane;  // of the warpgroups that multiply; of its warps
  RingPlace<kQStages> q_place;
  RingPlace<kKStages> k_place;
  RingPlace<kVStages> v_place;

  __device__ __forceinline__ Consumer(unsigned smem, const Barriers& at, int index, int warp, int lane)
      : smem(smem), at(at), index(index), warp(warp), lane(lane) {}

  /// The place of Q in shared memory, and of this warpgroup's rows.
  __device__ __forceinline__ unsigned q_tile() const { return smem + q_place.stage * kQPlaceBytes; }
  __device__ __forceinline__ unsigned q_rows() const { return q_tile() + 64 * index * Slab::kPitch; }
  /// The first row of this warp in the tile.
  __device__ __forceinline__ int warp_row() const { return 64 * index + 16 * warp; }

  __device__ __forceinline__ void wait_q() const { barrier_wait(at.q_full + 8 * q_place.stage, q_place.parity); }
  __device__ __forceinline__ void wait_k() const { barrier_wait(at.k_full + 8 * k_place.stage, k_place.parity); }
  __device__ __forceinline__ void wait_v() const { barrier_wait(at.v_full + 8 * v_place.stage, v_place.parity); }
  __device__ __forceinline__ void start_scores(float (&s)[1][BN / 8][4]) const {
    multiply_scores(s[0], q_rows(), smem + kSmemK + k_place.stage * kTileBytes);
  }
  __device__ __forceinline__ void start_values(float (&o)[D / 8][4], Fragments& p) const {
    multiply_values(o, p, v_tile());
  }
  __device__ __forceinline__ unsigned v_tile() const { return smem + kSmemV + v_place.stage * kTileBytes; }
  __device__ __forceinline__ void release_k() {
    release<kCluster>(at.k_empty + 8 * k_place.stage, lane);
    k_place.advance();
  }
  __device__ __forceinline__ void release_v() {
    release<kFp8 ? 1 : kCluster>(at.v_empty + 8 * v_place.stage, lane);
    v_place.advance();
  }
  /// The next Q is written by TMA.
  __device__ __forceinline__ void release_q() {
    async_proxy_fence();
    __syncwarp();
    if (lane == 0) barrier_arrive(at.q_empty + 8 * q_place.stage);
    q_place.advance();
  }
  __device__ __forceinline__ void sync_warpgroup() const { named_barrier(1 + kGroups + index, 128); }

  /// Other memory than the sequence's follows its last key. P is 0 there, but V need not be finite. `keys`: from
  /// the first of the tile on.
  __device__ __forceinline__ void clear_tail(int keys) const {
    if (keys >= BN) return;
    wait_v();
    const unsigned tile = v_tile();
#pragma unroll
    for (int slab = 0; slab < kSlabs; ++slab)
      for (int at = keys * Slab::kPitch + 16 * (threadIdx.x - 128); at < BN * Slab::kPitch; at += 16 * 128 * kGroups)
        store_shared_16(tile + slab * kTileSlabBytes + at, uint4{});
    async_proxy_fence();
    sync_consumers();
  }
  /// The last rows of a tile may be no whole query, and no copy fills them.
  __device__ __forceinline__ void clear_empty_rows() const {
    if constexpr (kUsedRows == BM) return;
#pragma unroll
    for (int slab = 0; slab < kSlabs; ++slab)
      for (int at = max(kUsedRows, 64 * index) * Slab::kPitch + 16 * (threadIdx.x % 128);
           at < 64 * (index + 1) * Slab::kPitch; at += 16 * 128)
        store_shared_16(q_tile() + slab * kQSlabBytes + at, uint4{});
    async_proxy_fence();
    sync_warpgroup();
  }
};
