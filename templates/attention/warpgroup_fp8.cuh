// P and V in e4m3 for a warpgroup. The kernel defines D, BN, Slab, kTileSlabBytes, kInFlight and multiply_pv.
//
// wgmma reads e4m3 along k only, and k of P V are the keys: V has to lie in shared memory as [column][key]. Other warps
// turn each tile that TMA has brought. ldmatrix.trans moves pairs of bytes, so a lane gets two columns of two keys; two
// byte permutations make of them two columns of four keys. Nothing else is exchanged: where a lane's registers belong
// decides the order of keys and columns.
//   - Keys: a lane's eight scores of 32 keys become its bytes of the A fragment as they are. Slot 4 t + 2 b + e of 16
//     slots along k is key 8 b + 2 t + e, in P and in V; the sum over keys does not depend on their order.
//   - Columns: of 16 columns of O, the even ones come first. A lane has columns 4 t to 4 t + 3 of a row in two
//     neighbouring blocks of 8.
// FlashAttention-3 (Shah et al. 2024, section 3.3) transposes V in the kernel, too.

/// V as [column][key], cut into slabs of keys.
using Turned = SwizzledSlab<BN % 128 == 0 ? 64 : BN % 64 == 0 ? 32 : 16>;
constexpr int kTurnedSlabBytes = D * Turned::kPitch;

__device__ __forceinline__ unsigned pack4_e4m3(float a, float b, float c, float d) {
  unsigned word;
  asm("{ .reg .b16 lo, hi; cvt.rn.satfinite.e4m3x2.f32 lo, %2, %1; cvt.rn.satfinite.e4m3x2.f32 hi, %4, %3; "
      "mov.b32 %0, { lo, hi}; }"
      : "=r"(word)
      : "f"(a), "f"(b), "f"(c), "f"(d));
  return word;
}
/// P as the A operand: four neighbouring 8 x 8 blocks of S are one fragment.
__device__ __forceinline__ void pack(unsigned (&p)[BN / 32][4], const float (&s)[BN / 8][4]) {
#pragma unroll
  for (int i = 0; i < BN / 32; ++i)
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int block = 4 * i + e / 2 * 2, row = e % 2 * 2;
      p[i][e] = pack4_e4m3(s[block][row], s[block][row + 1], s[block + 1][row], s[block + 1][row + 1]);
    }
}
/// Starts O += P V.
__device__ __forceinline__ void multiply_values(float (&o)[D / 8][4], unsigned (&p)[BN / 32][4], unsigned v) {
  const unsigned long long v_tile = Turned::along_k(v);
  hold(o);
  hold(p);
  wgmma_fence();
#pragma unroll
  for (int i = 0; i < BN / 32; ++i)
    multiply_pv(o, p[i], moved(v_tile, 32 * i / Turned::kPitch * kTurnedSlabBytes + 32 * i % Turned::kPitch), true);
  wgmma_commit();
}

__device__ __forceinline__ void load_turned_matrices(unsigned (&r)[4], unsigned from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 { %0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(from)
               : "memory");
}
__device__ __forceinline__ void store_matrices(unsigned to, unsigned a, unsigned b, unsigned c, unsigned d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], { %1, %2, %3, %4};" ::"r"(to), "r"(a), "r"(b), "r"(c),
               "r"(d)
               : "memory");
}

/// A warp's share, of kWarps, of turning a tile, in units of 32 keys and 16 columns. kTail: keys from `keys` on
/// become 0.
template <int kWarps, bool kTail>
__device__ __forceinline__ void turn_tile(unsigned from, unsigned to, unsigned warp, unsigned lane, int keys) {
  constexpr unsigned kAcross = D / 16, kUnits = BN / 32 * kAcross;
#pragma unroll 1
  for (unsigned first = warp; first < kUnits; first += kInFlight * kWarps) {
    unsigned r[kInFlight][4];  // of keys 8 m to 8 m + 7 of the unit: a byte of each of two columns of two keys
#pragma unroll
    for (unsigned b = 0; b < kInFlight; ++b) {
      const unsigned unit = first + b * kWarps, key = 32 * (unit / kAcross), chunk = unit % kAcross;
      if (unit >= kUnits) continue;
      load_turned_matrices(r[b], from + chunk / Slab::kChunks * kTileSlabBytes + key * Slab::kPitch +
                                     Slab::offset(lane, chunk % Slab::kChunks));
      if constexpr (kTail) {
#pragma unroll
        for (unsigned m = 0; m < 4; ++m) {
          const int left = keys - static_cast<int>(key + 8 * m + lane % 4 * 2);
          r[b][m] &= left >= 2 ? 0xffffffffu : left == 1 ? 0xffffu : 0u;
        }
      }
    }
#pragma unroll
    for (unsigned b = 0; b < kInFlight; ++b) {
      const unsigned unit = first + b * kWarps, chunk = unit / kAcross * 2, column = unit % kAcross * 16;
      if (unit >= kUnits) continue;
      const unsigned slab = to + chunk / Turned::kChunks * kTurnedSlabBytes + column * Turned::kPitch;
      store_matrices(slab + Turned::offset(lane % 16, chunk % Turned::kChunks + lane / 16),
                     __byte_perm(r[b][0], r[b][1], 0x6420), __byte_perm(r[b][0], r[b][1], 0x7531),
                     __byte_perm(r[b][2], r[b][3], 0x6420), __byte_perm(r[b][2], r[b][3], 0x7531));
    }
  }
}

/// A warp that transposes V from the ring as it is in memory into the ring for the products.
struct Turner {
  unsigned smem;
  const Barriers& at;
  int warp, lane;  // of kTurners
  RingPlace<kRawStages> raw_place;
  RingPlace<kVStages> v_place;

  __device__ __forceinline__ Turner(unsigned smem, const Barriers& at, int warp, int lane)
      : smem(smem), at(at), warp(warp), lane(lane) {}
  __device__ __forceinline__ void turn(const Tile& tile) {
    KeyTiles tiles(tile, lane);
#pragma unroll 1
    while (tiles.more()) {
      const int keys = tile.kv_len - tiles.take() * BN;  // from the first of the tile on
      const unsigned from = smem + kSmemRaw + raw_place.stage * kTileBytes;
      const unsigned to = smem + kSmemV + v_place.stage * kTileBytes;
      barrier_wait(at.raw_full + 8 * raw_place.stage, raw_place.parity);
      barrier_wait(at.v_empty + 8 * v_place.stage, v_place.parity ^ 1);
      // Other memory than the sequence's follows its last key. P is 0 there, but V need not be finite.
      if (kHasTail && keys < BN)
        turn_tile<kTurners, true>(from, to, warp, lane, keys);
      else
        turn_tile<kTurners, false>(from, to, warp, lane, keys);
      async_proxy_fence();
      __syncwarp();
      if (lane == 0) barrier_arrive(at.v_full + 8 * v_place.stage);
      release<kCluster>(at.raw_empty + 8 * raw_place.stage, lane);
      raw_place.advance();
      v_place.advance();
    }
  }
};
