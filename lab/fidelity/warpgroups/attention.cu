// Attention forward for sm_90a in the structure of FlashAttention-3 at d 128 (docs/evidence/fidelity-kernels.md): a warpgroup that
// loads, two that multiply and take turns, the softmax of one tile of keys over the product with V of the tile before.
// The structure is the published one, the code is ours. fp16, rows of 128.
//
// KEYS     of a tile: 176 without a mask, 128 with one
// CAUSAL   1: rows see the keys up to their own
// The helpers of templates/lib stand before this file: barrier.cuh, tensor_copy.cuh, wgmma.cuh, cluster.cuh.
#include <cuda_fp16.h>

using u32 = unsigned;
using u64 = unsigned long long;

constexpr int kD = 128, kRows = 128, kStages = 2, kGroups = KEYS / 16;
constexpr u32 kSlabQ = kRows * 128, kSlabK = KEYS * 128;  // 64 columns each, 128 bytes a row

#define X8(b) "+f"(s[b]), "+f"(s[b + 1]), "+f"(s[b + 2]), "+f"(s[b + 3]), "+f"(s[b + 4]), "+f"(s[b + 5]), "+f"(s[b + 6]), \
              "+f"(s[b + 7])
#define X32(b) X8(b), X8(b + 8), X8(b + 16), X8(b + 24)
#define R0 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28," \
           "%29,%30,%31"
#define R1 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57," \
           "%58,%59,%60,%61,%62,%63"
#define R64 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87"

__device__ __forceinline__ void scores(float (&s)[KEYS / 2], u64 a, u64 b, int add) {
#if KEYS == 176
  asm volatile("{.reg .pred p; setp.ne.b32 p, %90, 0; wgmma.mma_async.sync.aligned.m64n176k16.f32.f16.f16 {" R0 R1 R64
               "}, %88, %89, p, 1, 1, 0, 0;}"
               : X32(0), X32(32), X8(64), X8(72), X8(80) : "l"(a), "l"(b), "r"(add));
#else
  asm volatile("{.reg .pred p; setp.ne.b32 p, %66, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" R0 R1
               "}, %64, %65, p, 1, 1, 0, 0;}"
               : X32(0), X32(32) : "l"(a), "l"(b), "r"(add));
#endif
}
// V by keys: its columns are the N of the product, so B is transposed.
__device__ __forceinline__ void add_values(float (&s)[kD / 2], const u32 (&p)[4], u64 v) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" R0 R1
               "}, {%64,%65,%66,%67}, %68, 1, 1, 1, 1;"
               : X32(0), X32(32) : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "l"(v));
}

__device__ __forceinline__ u32 shared(const void* p) { return static_cast<u32>(__cvta_generic_to_shared(p)); }
__device__ __forceinline__ void load(u32 to, const TensorMap* map, int x, int y, int head, u32 bar) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to),
      "l"(map), "r"(x), "r"(y), "r"(head), "r"(bar) : "memory");
}
__device__ __forceinline__ float exp2_of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ u32 pack(float a, float b) {
  const __half2 pair = __floats2half2_rn(a, b);
  return *reinterpret_cast<const u32*>(&pair);
}

// The row maxima and sums of a lane: rows g and g + 8 of its warp.
struct Softmax {
  float most[2], sum[2], factor[2];
  __device__ void first() { most[0] = most[1] = -1e30f, sum[0] = sum[1] = 0; }
  __device__ void step(float (&s)[KEYS / 2], float scale) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float m = most[r];
#pragma unroll
      for (int i = 0; i < KEYS / 2; i += 4) m = fmaxf(m, fmaxf(s[i + 2 * r], s[i + 2 * r + 1]));
      m = fmaxf(m, __shfl_xor_sync(0xffffffff, m, 1));
      m = fmaxf(m, __shfl_xor_sync(0xffffffff, m, 2));
      factor[r] = exp2_of((most[r] - m) * scale);
      most[r] = m;
      const float base = m * scale;
      float add = 0;
#pragma unroll
      for (int i = 0; i < KEYS / 2; i += 4)
#pragma unroll
        for (int k = 0; k < 2; ++k) {
          float& x = s[i + 2 * r + k];
          x = exp2_of(x * scale - base);
          add += x;
        }
      sum[r] = sum[r] * factor[r] + add;
    }
  }
};

__device__ __forceinline__ void packed(u32 (&p)[kGroups][4], const float (&s)[KEYS / 2]) {
#pragma unroll
  for (int g = 0; g < kGroups; ++g)
#pragma unroll
    for (int i = 0; i < 4; ++i) p[g][i] = pack(s[8 * g + 2 * i], s[8 * g + 2 * i + 1]);
}

extern "C" __global__ void __launch_bounds__(384, 1)
    attention(const __grid_constant__ TensorMap map_q, const __grid_constant__ TensorMap map_k,
              const __grid_constant__ TensorMap map_v, const __grid_constant__ TensorMap map_o, int length, int heads,
              int heads_in_l2, float scale) {
  extern __shared__ __align__(1024) unsigned char raw[];
  __shared__ __align__(8) u64 barriers[3 + 4 * kStages];
  const u32 tile_q = shared(raw), tiles_k = tile_q + 2 * kSlabQ, tiles_v = tiles_k + kStages * 2 * kSlabK;
  const u32 full_q = shared(barriers), empty_q = full_q + 8, full_k = full_q + 16, empty_k = full_k + 8 * kStages,
            full_v = empty_k + 8 * kStages, empty_v = full_v + 8 * kStages, stored_o = empty_v + 8 * kStages;
  const int group = __shfl_sync(0xffffffff, threadIdx.x / 128, 0);
  if (threadIdx.x == 0) {
    barrier_init(full_q, 1), barrier_init(empty_q, 2), barrier_init(stored_o, 2);
    for (int s = 0; s < kStages; ++s) {
      barrier_init(full_k + 8 * s, 1), barrier_init(empty_k + 8 * s, 2);
      barrier_init(full_v + 8 * s, 1), barrier_init(empty_v + 8 * s, 2);
    }
    barrier_init_fence();
  }
  __syncthreads();
  const int blocks = (length + kRows - 1) / kRows, tiles = blocks * heads;
  const auto place = [&](int tile, int& block, int& head, int& steps) {
    if (CAUSAL) {
      // The longest first, of as many heads at a time as L2 holds.
      const int part = tile / (heads_in_l2 * blocks), in = tile % (heads_in_l2 * blocks);
      block = blocks - 1 - in / heads_in_l2;
      head = part * heads_in_l2 + in % heads_in_l2;
    } else {
      block = tile % blocks, head = tile / blocks;
    }
    steps = ((CAUSAL ? min(length, (block + 1) * kRows) : length) + KEYS - 1) / KEYS;
  };
  int block, head, steps;
  if (group == 0) {
    give_registers<24>();
    if (threadIdx.x == 0) {
      int stage = 0;
      u32 parity = 1, parity_q = 1;
      for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x, parity_q ^= 1) {
        place(tile, block, head, steps);
        barrier_wait(empty_q, parity_q);
        barrier_arrive_expect(full_q, 2 * kSlabQ);
        for (int slab = 0; slab < 2; ++slab) load(tile_q + slab * kSlabQ, &map_q, 64 * slab, block * kRows, head, full_q);
        for (int step = steps - 1; step >= 0; --step) {
          barrier_wait(empty_k + 8 * stage, parity);
          barrier_arrive_expect(full_k + 8 * stage, 2 * kSlabK);
          for (int slab = 0; slab < 2; ++slab)
            load(tiles_k + (2 * stage + slab) * kSlabK, &map_k, 64 * slab, step * KEYS, head, full_k + 8 * stage);
          if (step == steps - 1) barrier_wait(stored_o, parity_q);  // O takes a place of V
          barrier_wait(empty_v + 8 * stage, parity);
          barrier_arrive_expect(full_v + 8 * stage, 2 * kSlabK);
          for (int slab = 0; slab < 2; ++slab)
            load(tiles_v + (2 * stage + slab) * kSlabK, &map_v, 64 * slab, step * KEYS, head, full_v + 8 * stage);
          if (++stage == kStages) stage = 0, parity ^= 1;
        }
      }
    }
  } else {
    take_registers<240>();
    const int consumer = group - 1, lane = threadIdx.x % 128, g = lane % 32 / 4, t = lane % 4;
    const u32 rows_q = tile_q + consumer * 8192;
    int stage = 0;
    u32 parity = 0, parity_q = 0;
    if (consumer == 1) named_barrier_arrive(1, 256);  // barriers 1 and 2: the turns of the consumers
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x, parity_q ^= 1) {
      place(tile, block, head, steps);
      float s[KEYS / 2], o[kD / 2];
      u32 p[kGroups][4];
      Softmax softmax;
      softmax.first();
      const auto multiply_keys = [&](int at) {
#pragma unroll
        for (int k = 0; k < kD / 16; ++k)
          scores(s, descriptor_128(rows_q + k / 4 * kSlabQ + k % 4 * 32),
                 descriptor_128(tiles_k + (2 * at + k / 4) * kSlabK + k % 4 * 32), k > 0);
        wgmma_commit();
      };
      const auto multiply_values = [&](int at) {
#pragma unroll
        for (int k = 0; k < kGroups; ++k)
          add_values(o, p[k], descriptor_128(tiles_v + 2 * at * kSlabK + k * 2048, kSlabK));
        wgmma_commit();
      };
      const auto mask = [&](int step) {
        const int row = block * kRows + consumer * 64 + lane / 32 * 16 + g;
#pragma unroll
        for (int i = 0; i < KEYS / 2; ++i) {
          const int key = step * KEYS + 8 * (i >> 2) + 2 * t + (i & 1);
          if (key >= length || (CAUSAL && key > row + 8 * (i >> 1 & 1))) s[i] = -1e30f;
        }
      };
      barrier_wait(full_q, parity_q);
      barrier_wait(full_k + 8 * stage, parity);
      wgmma_fence();
      multiply_keys(stage);
      wgmma_wait<0>();
      if (lane == 0) barrier_arrive(empty_k + 8 * stage);
      mask(steps - 1);
      softmax.step(s, scale);
      packed(p, s);
      int before = stage;
      u32 parity_before = parity;
      if (++stage == kStages) stage = 0, parity ^= 1;
      const auto body = [&](int step, bool masked) {
        barrier_wait(full_k + 8 * stage, parity);
        named_barrier(1 + consumer, 256);
        wgmma_fence();
        multiply_keys(stage);
        barrier_wait(full_v + 8 * before, parity_before);
        multiply_values(before);
        named_barrier_arrive(2 - consumer, 256);
        wgmma_wait<1>();
        if (lane == 0) barrier_arrive(empty_k + 8 * stage);
        if (masked) mask(step);
        softmax.step(s, scale);
        wgmma_wait<0>();
        if (lane == 0) barrier_arrive(empty_v + 8 * before);
#pragma unroll
        for (int i = 0; i < kD / 2; ++i) o[i] *= softmax.factor[i >> 1 & 1];
        packed(p, s);
        before = stage, parity_before = parity;
        if (++stage == kStages) stage = 0, parity ^= 1;
      };
      int step = steps - 2;
#pragma unroll
      for (int i = 0; i < kD / 2; ++i) o[i] = 0;
      if (CAUSAL)
        for (; step >= 0 && (step + 1) * KEYS > block * kRows + consumer * 64; --step) body(step, true);
      for (; step >= 0; --step) body(step, false);
      if (lane == 0) barrier_arrive(empty_q);
      barrier_wait(full_v + 8 * before, parity_before);
      wgmma_fence();
      multiply_values(before);
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        softmax.sum[r] += __shfl_xor_sync(0xffffffff, softmax.sum[r], 1);
        softmax.sum[r] += __shfl_xor_sync(0xffffffff, softmax.sum[r], 2);
      }
      wgmma_wait<0>();
      if (lane == 0) barrier_arrive(empty_v + 8 * before);
      // O takes a place of V, which both consumers have read, and leaves by a tensor copy.
      named_barrier(5, 256);
      const float inverse[2] = {__fdividef(1, softmax.sum[0]), __fdividef(1, softmax.sum[1])};
#pragma unroll
      for (int i = 0; i < kD / 2; i += 8) {
        // stmatrix of four 8 x 8 parts: rows of this lane's group, 16 columns
        u32 r[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) r[k] = pack(o[i + 2 * k] * inverse[k & 1], o[i + 2 * k + 1] * inverse[k & 1]);
        const int row = lane / 32 * 16 + lane % 16, column = 2 * i + lane % 32 / 16 * 8;
        const u32 offset = column / 64 * kSlabQ + (consumer * 64 + row) * 128 + column % 64 * 2;
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(
                         tiles_v + (offset ^ (offset >> 7 & 7) << 4)),
                     "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
      }
      async_proxy_fence();
      named_barrier(3 + consumer, 128);
      if (lane == 0) {
        for (int slab = 0; slab < 2; ++slab)
          asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(&map_o),
                       "r"(64 * slab), "r"(block * kRows + consumer * 64), "r"(head),
                       "r"(tiles_v + slab * kSlabQ + consumer * 8192) : "memory");
        tensor_store_commit();
        tensor_store_wait<0>();
        barrier_arrive(stored_o);
      }
    }
  }
}
