// An even split: the CTA with the first keys of a tile adds the parts that others have left. They have the tile's later
// keys, at the beginning of their runs; this CTA is at the end of its own, so they are there as a rule. The order of
// the parts is always the same.

/// Adds row h of a part, times `weight`, to O times `own`.
__device__ __forceinline__ void add_part(float (&o)[D / 8][4], int h, const float* from, float own, float weight,
                                         int lane) {
  if constexpr (kFp8) {
    from += lane % 4 * 4;  // four neighbouring columns
#pragma unroll
    for (int n = 0; n < D / 8; n += 2) {
      const float4 x = *reinterpret_cast<const float4*>(from + 8 * n);
      o[n][2 * h] = o[n][2 * h] * own + x.x * weight;
      o[n + 1][2 * h] = o[n + 1][2 * h] * own + x.y * weight;
      o[n][2 * h + 1] = o[n][2 * h + 1] * own + x.z * weight;
      o[n + 1][2 * h + 1] = o[n + 1][2 * h + 1] * own + x.w * weight;
    }
  } else {
    from += lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
      const float2 x = *reinterpret_cast<const float2*>(from + 8 * n);
      o[n][2 * h] = o[n][2 * h] * own + x.x * weight;
      o[n][2 * h + 1] = o[n][2 * h + 1] * own + x.y * weight;
    }
  }
}

/// `top`: the maximum of a row, scaled. `counter`: of the tile's parts.
__device__ __forceinline__ void add_parts(const Launch& launch, const LaneRows& at, unsigned* counter,
                                          float (&o)[D / 8][4], Rows& rows, float (&top)[2], int lane) {
  const int parts = at.tile.parts;
  if (at.tile.split > 0 || parts == 1) return;
  if (threadIdx.x == 128) collect(counter, parts - 1);
  sync_consumers();
#pragma unroll 1
  for (int s = 1; s < parts; ++s)
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if (!at.used(h)) continue;
      const long long part = at.index(h) * launch.splits + s;
      const float log = launch.partial_lse[part], next = fmaxf(top[h], log),
                  reference = next == neg_inf() ? 0.0f : next;
      const float own = ex2(top[h] - reference), weight = ex2(log - reference);
      add_part(o, h, launch.partial_o + part * D, own, weight, lane);
      rows.sum[h] = rows.sum[h] * own + (lane % 4 == 0 ? weight : 0.0f);  // a quad's sums are added up later
      top[h] = next;
    }
}
