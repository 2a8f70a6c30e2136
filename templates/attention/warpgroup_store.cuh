// O, its parts and LSE, from the registers of a warpgroup of attention/warpgroup.cu.jinja.

/// The rows of a tile one by one.
struct EachRow {
  const Tile& tile;
  TileRows rows;
  __device__ __forceinline__ explicit EachRow(const Tile& tile) : tile(tile), rows(tile.rows()) {}
  __device__ __forceinline__ bool used(int i) const { return kGroup > 1 ? rows.used(i) : tile.row0 + i < tile.end_row; }
  __device__ __forceinline__ int query(int i) const { return tile.row0 + (kGroup > 1 ? rows.row(i) : i); }
  __device__ __forceinline__ int head(int i) const { return tile.head + (kGroup > 1 ? rows.head(i) : 0); }
};

/// A row's part: its columns in fp32.
__device__ __forceinline__ void store_part(float* to, const float (&o)[D / 8][4], int h, float inverse, int lane) {
  if constexpr (kFp8) {
    to += lane % 4 * 4;  // four neighbouring columns
#pragma unroll
    for (int n = 0; n < D / 8; n += 2)
      *reinterpret_cast<float4*>(to + 8 * n) = make_float4(o[n][2 * h] * inverse, o[n + 1][2 * h] * inverse,
                                                           o[n][2 * h + 1] * inverse, o[n + 1][2 * h + 1] * inverse);
  } else {
    to += lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < D / 8; ++n)
      *reinterpret_cast<float2*>(to + 8 * n) = make_float2(o[n][2 * h] * inverse, o[n][2 * h + 1] * inverse);
  }
}

/// Divides the sums of a lane's rows: the factors of O. Writes LSE, or the part of this CTA.
__device__ __forceinline__ void finish_rows(const Launch& launch, const LaneRows& at, const Rows& rows,
                                            const float (&top)[2], const float (&o)[D / 8][4], float (&inverse)[2],
                                            int lane) {
  const Tile& tile = at.tile;
  const int split = tile.split;
  const float scale_log2 = tile.scale_log2();
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const float sum = quad_sum(rows.sum[h]);
    const bool empty = kMayBeEmpty && sum == 0.0f;  // no key allowed: O = 0, LSE = -inf
    float value_scale = 1.0f;
    if constexpr (kFp8) value_scale = kEven && split > 0 ? 1.0f : launch.v_scale[tile.kv_scale];
    inverse[h] = empty ? 0.0f : rcp_approx(sum) * value_scale;
    if (kWriteLse && kStoresO && (!kEven || split == 0)) {
      const float log2_sum = log2_approx(sum) - kPExponent;
      const float log_sum = kEven ? (top[h] + log2_sum) * kLn2 : log_of_sum(rows.max[h], scale_log2, log2_sum);
      if (lane % 4 == 0 && at.used(h)) launch.lse[at.index(h)] = empty ? neg_inf() : log_sum;
    }
    if (kParts && at.used(h) && (!kEven || split > 0)) {
      const long long part = at.index(h) * launch.splits + split;
      const float log_sum = top[h] + log2_approx(sum) - (kEven ? 0.0f : kPExponent);
      if (lane % 4 == 0) launch.partial_lse[part] = empty ? neg_inf() : log_sum;
      store_part(launch.partial_o + part * D, o, h, inverse[h], lane);
    }
  }
}

/// O, through the shared memory of this warpgroup's rows of Q (in fp8, with as much again after all rows).
__device__ __forceinline__ void store_output(const Launch& launch, const Tile& tile, const Consumer& consumer,
                                             const TensorMap& o_map, const float (&o)[D / 8][4],
                                             const float (&inverse)[2]) {
  const int lane = consumer.lane, warp = consumer.warp, warp_row = consumer.warp_row();
  const unsigned sm_q = consumer.q_rows();
  consumer.sync_warpgroup();  // all its warps have read Q
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int row = 16 * warp + 8 * h + lane / 4;
#pragma unroll
    for (int n = 0; n < D / 8; n += kFp8 ? 2 : 1) {
      if constexpr (kFp8) {
        const int chunk = n + lane % 4 / 2;  // four neighbouring columns
        const unsigned to = sm_q + chunk / Slab::kChunks * kQSlabBytes + Slab::offset(row, chunk % Slab::kChunks);
        const unsigned even = pack2<Half>(o[n][2 * h] * inverse[h], o[n + 1][2 * h] * inverse[h]);
        const unsigned odd = pack2<Half>(o[n][2 * h + 1] * inverse[h], o[n + 1][2 * h + 1] * inverse[h]);
        store_shared_8(to + lane % 2 * 8, {even, odd});
      } else {
        const unsigned to = sm_q + n / Slab::kChunks * kQSlabBytes + Slab::offset(row, n % Slab::kChunks);
        store_shared_32(to + lane % 4 * 4, pack2<Half>(o[n][2 * h] * inverse[h], o[n][2 * h + 1] * inverse[h]));
      }
    }
  }
  const unsigned sm_o = sm_q + 16 * warp * Slab::kPitch;
  const int query = tile.row0 + warp_row, rows = tile.q_len - query;  // kGroup == 1
  const auto chunk_of = [&](int row, int chunk) {
    return load_shared_16(sm_o + chunk / Slab::kChunks * kQSlabBytes + Slab::offset(row, chunk % Slab::kChunks));
  };
  if constexpr (kGroup > 1) {
    const TileRows tile_rows = tile.rows();
    __syncwarp();
    for (int i = lane; i < D / 8 * 16; i += 32) {
      const int row = i / (D / 8), chunk = i % (D / 8), in_tile = warp_row + row;
      if (!tile_rows.used(in_tile)) break;  // rows in use come first
      char* const to = reinterpret_cast<char*>(
          launch.o + (kVarlen ? tile.first_token * launch.o_row_stride : tile.batch * launch.o_batch_stride) +
          (tile.head + tile_rows.head(in_tile)) * launch.o_head_stride +
          (tile.row0 + tile_rows.row(in_tile)) * launch.o_row_stride);
      *reinterpret_cast<uint4*>(to + 16 * chunk) = chunk_of(row, chunk);
    }
    return;
  }
  if (kVarlen && rows < 16) {  // the rows after them belong to the next sequence
    __syncwarp();
    char* const to = reinterpret_cast<char*>(launch.o + (tile.first_token + query) * launch.o_row_stride +
                                             tile.head * launch.o_head_stride);
    for (int i = lane; i < D / 8 * rows; i += 32) {
      const int row = i / (D / 8), chunk = i % (D / 8);
      *reinterpret_cast<uint4*>(to + 2 * row * launch.o_row_stride + 16 * chunk) = chunk_of(row, chunk);
    }
  }
  async_proxy_fence();
  __syncwarp();
  if (lane == 0 && query + (kVarlen ? 15 : 0) < tile.q_len) {
#pragma unroll
    for (int slab = 0; slab < D / Slab::kColumns; ++slab)
      tensor_store(o_map, sm_o + slab * kQSlabBytes, slab * Slab::kColumns, tile.first_token + query, tile.head,
                   tile.slice);
    tensor_store_commit();
    tensor_store_wait<0>();
  }
}
