// GEMM for sm_90a in the steps of the fast.cu ladder (docs/evidence/fidelity-kernels.md): the techniques are the published
// ones, the code is ours. C[m][n] = sum of A[m][k] B[n][k], all bf16. The step is chosen by macros:
//
// BM, BN, STAGES   tile and ring; the tile of k has 64 elements
// CONSUMERS        warpgroups that multiply, each BM / CONSUMERS rows
// PRODUCER         1: a warpgroup of its own loads; 0: the consumers do, and wait for every tile
// ALL_ARRIVE       1: every thread of a consumer frees a stage, as with cuda::barrier; 0: one of each warpgroup
// PERSISTENT       1: CTAs go through tiles in groups of 16 x 8
// CLUSTER          CTAs that share tiles of B by multicast: 1 or 2
// ZERO_FIRST       1: the accumulators are zeroed; 0: the first product of a tile overwrites them
// STAGED           1: C goes through shared memory, by a tensor copy
// The helpers of templates/lib stand before this file: barrier.cuh, tensor_copy.cuh, wgmma.cuh, cluster.cuh.
#include <cuda_bf16.h>

using u32 = unsigned;
using u64 = unsigned long long;

constexpr int kThreads = 128 * (CONSUMERS + PRODUCER);
constexpr int kRows = BM / CONSUMERS / 64;  // wgmmas of 64 rows
constexpr u32 kBytesA = BM * 128, kBytesB = BN * 128;

#define LIST8(f, b) f(b), f(b + 1), f(b + 2), f(b + 3), f(b + 4), f(b + 5), f(b + 6), f(b + 7)
#define OUT(i) "+f"(d[i])
#define OUT32(b) LIST8(OUT, b), LIST8(OUT, b + 8), LIST8(OUT, b + 16), LIST8(OUT, b + 24)
#define R0 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28," \
           "%29,%30,%31"
#define R1 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57," \
           "%58,%59,%60,%61,%62,%63"
#define R23                                                                                                       \
  ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90," \
  "%91,%92,%93,%94,%95,%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,"    \
  "%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"

__device__ __forceinline__ void multiply(float (&d)[BN / 2], u64 a, u64 b, int add) {
#if BN == 64
  asm volatile("{.reg .pred p; setp.ne.b32 p, %34, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" R0
               "}, %32, %33, p, 1, 1, 0, 0;}"
               : OUT32(0) : "l"(a), "l"(b), "r"(add));
#elif BN == 128
  asm volatile("{.reg .pred p; setp.ne.b32 p, %66, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" R0 R1
               "}, %64, %65, p, 1, 1, 0, 0;}"
               : OUT32(0), OUT32(32) : "l"(a), "l"(b), "r"(add));
#else
  asm volatile("{.reg .pred p; setp.ne.b32 p, %130, 0; wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" R0 R1 R23
               "}, %128, %129, p, 1, 1, 0, 0;}"
               : OUT32(0), OUT32(32), OUT32(64), OUT32(96) : "l"(a), "l"(b), "r"(add));
#endif
}

__device__ __forceinline__ u32 shared(const void* p) { return static_cast<u32>(__cvta_generic_to_shared(p)); }

// The tiles of a CTA. In groups of 16 x 8 tiles, so that CTAs of a wave share rows and columns; the CTAs of a cluster
// take neighbouring rows.
struct Order {
  int rows, columns, next, step;
  __device__ Order(int m, int n) : rows(m / BM), columns(n / BN) {
    next = blockIdx.x;
    step = PERSISTENT ? gridDim.x : rows * columns;
  }
  __device__ bool take(int& row, int& column) {
    if (next >= rows * columns) return false;
    if (PERSISTENT) {
      const int in = next % (16 * 8), group = next / (16 * 8), across = columns / 8;
      row = group / across * 16 + in % 16;
      column = group % across * 8 + in / 16;
    } else {
      row = next / columns, column = next % columns;
    }
    next += step;
    return true;
  }
};

extern "C" __global__ void __launch_bounds__(kThreads, CONSUMERS + PRODUCER > 1 ? 1 : 0)
    gemm(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
         const __grid_constant__ TensorMap map_c, __nv_bfloat16* c, int m, int n, int k) {
  extern __shared__ __align__(1024) unsigned char raw[];
  __shared__ __align__(8) u64 barriers[2 * STAGES];
  const u32 tiles_a = shared(raw), tiles_b = tiles_a + STAGES * kBytesA, tile_c = tiles_b + STAGES * kBytesB;
  const u32 full = shared(barriers), empty = full + 8 * STAGES;
  const u32 rank = CLUSTER > 1 ? cluster_rank() : 0;
  const int group = __shfl_sync(0xffffffff, threadIdx.x / 128, 0), steps = k / 64;
  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; ++s) {
      barrier_init(full + 8 * s, 1);
      barrier_init(empty + 8 * s, CONSUMERS * CLUSTER * (ALL_ARRIVE ? 128 : 1));
    }
    barrier_init_fence();
  }
  if (CLUSTER > 1) cluster_sync();
  else __syncthreads();

  const auto fill = [&](int stage, int step, int row, int column) {
    barrier_arrive_expect(full + 8 * stage, kBytesA + kBytesB);
    tensor_load(tiles_a + stage * kBytesA, map_a, full + 8 * stage, 64 * step, row * BM);
    if (CLUSTER > 1)
      tensor_load_multicast(tiles_b + stage * kBytesB + rank * (kBytesB / 2), map_b, full + 8 * stage, 3, 64 * step,
                            column * BN + rank * (BN / 2));
    else
      tensor_load(tiles_b + stage * kBytesB, map_b, full + 8 * stage, 64 * step, column * BN);
  };
  int row, column;
  if (PRODUCER && group == 0) {
#if PRODUCER && CONSUMERS > 1
    give_registers<24>();
#endif
    if (threadIdx.x == 0) {
      int stage = 0;
      u32 parity = 1;
      for (Order order(m, n); order.take(row, column);)
        for (int step = 0; step < steps; ++step) {
          barrier_wait(empty + 8 * stage, parity);
          fill(stage, step, row, column);
          if (++stage == STAGES) stage = 0, parity ^= 1;
        }
    }
  } else {
#if PRODUCER && CONSUMERS > 1
    take_registers<240>();
#endif
    const int consumer = group - PRODUCER, lane = threadIdx.x % 128;
    float d[kRows][BN / 2];
    int stage = 0;
    u32 parity = 0;
    for (Order order(m, n); order.take(row, column);) {
      if (ZERO_FIRST)
        for (int r = 0; r < kRows; ++r)
          for (int i = 0; i < BN / 2; ++i) d[r][i] = 0;
      for (int step = 0; step < steps; ++step) {
        if (!PRODUCER) {
          if (threadIdx.x == 0) fill(stage, step, row, column);
          __syncwarp();
        }
        barrier_wait(full + 8 * stage, parity);
        wgmma_fence();
#pragma unroll
        for (int r = 0; r < kRows; ++r)
#pragma unroll
          for (int part = 0; part < 4; ++part)
            multiply(d[r], descriptor_128(tiles_a + stage * kBytesA + (consumer * kRows + r) * 8192 + part * 32),
                     descriptor_128(tiles_b + stage * kBytesB + part * 32), ZERO_FIRST || step + part > 0);
        wgmma_commit();
        wgmma_wait<0>();
        if (!PRODUCER) __syncthreads();
        else if (CLUSTER > 1 && lane < CLUSTER) barrier_arrive_at(empty + 8 * stage, lane);
        else if (CLUSTER == 1 && (ALL_ARRIVE || lane == 0)) barrier_arrive(empty + 8 * stage);
        if (++stage == STAGES) stage = 0, parity ^= 1;
      }
      const int warp = lane / 32, g = lane % 32 / 4, t = lane % 4;
#if STAGED
      if (lane == 0) tensor_store_wait<0>();
      named_barrier(consumer + 1, 128);
#endif
      for (int r = 0; r < kRows; ++r)
        for (int i = 0; i < BN / 2; i += 2) {
          const int y = (consumer * kRows + r) * 64 + warp * 16 + g + 8 * (i >> 1 & 1), x = 8 * (i >> 2) + 2 * t;
          const __nv_bfloat162 pair = __floats2bfloat162_rn(d[r][i], d[r][i + 1]);
          if (STAGED) {
            // Slabs of 64 columns, 128 bytes a row, swizzled as the tensor copy reads them.
            const u32 offset = (x / 64) * BM * 128 + y * 128 + x % 64 * 2;
            *reinterpret_cast<__nv_bfloat162*>(raw + (tile_c - tiles_a) + (offset ^ (offset >> 7 & 7) << 4)) = pair;
          } else {
            *reinterpret_cast<__nv_bfloat162*>(c + static_cast<u64>(row * BM + y) * n + column * BN + x) = pair;
          }
        }
#if STAGED
      async_proxy_fence();
      named_barrier(consumer + 1, 128);
      if (lane == 0) {
        for (int slab = 0; slab < BN / 64; ++slab)
          tensor_store(map_c, tile_c + slab * BM * 128 + consumer * kRows * 8192, column * BN + slab * 64,
                       row * BM + consumer * kRows * 64);
        tensor_store_commit();
      }
#endif
    }
  }
  if (CLUSTER > 1) cluster_sync();
}
