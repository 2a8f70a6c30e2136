// Measures the constants of the time model on a Hopper GPU and prints them as one JSON object (docs/probe.md).
//
//   nvcc -std=c++17 -O3 -gencode=arch=compute_90a,code=sm_90a -cudart static -Xcompiler
//   -static-libstdc++,-static-libgcc
//        -o probe bench/probe/probe.cu
//   ./probe [SECTION ...] > probe.json
//
// Every section runs in a process of its own that is killed when its time is up, so that neither a hanging kernel nor a
// sticky error takes the others along. Products are compared with the host's. Cycles are those of one SM's clock.
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <signal.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

// ---------------------------------------------------------------------------------------------------------- device

constexpr long long kSpinCycles = 200'000'000;  // a wait gives up after about a tenth of a second
__device__ int g_failed;                        // set when a bounded wait gave up; then all waits give up at once

__device__ __forceinline__ long long cycles() {
  long long value;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(value)::"memory");
  return value;
}

__device__ __forceinline__ long long nanoseconds() {
  long long value;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value)::"memory");
  return value;
}

__device__ __forceinline__ uint32_t sharedAddress(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void initBarrier(uint32_t barrier, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

__device__ __forceinline__ void fenceBarrierInit() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void expectBytes(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void arriveAt(uint32_t barrier, uint32_t cta) {
  asm volatile(
      "{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n}" ::"r"(barrier),
      "r"(cta)
      : "memory");
}

__device__ __forceinline__ bool tryWait(uint32_t barrier, uint32_t parity) {
  uint32_t done;
  asm volatile(
      "{\n.reg .pred done;\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%1], %2;\n"
      "selp.u32 %0, 1, 0, done;\n}"
      : "=r"(done)
      : "r"(barrier), "r"(parity)
      : "memory");
  return done != 0;
}

__device__ __forceinline__ void wait(uint32_t barrier, uint32_t parity) {
  if (tryWait(barrier, parity)) {
    return;
  }
  const long long start = cycles();
  while (!tryWait(barrier, parity)) {
    if (cycles() - start > kSpinCycles || *const_cast<volatile int*>(&g_failed) != 0) {
      g_failed = 1;
      return;
    }
  }
}

__device__ __forceinline__ void loadTile(uint32_t to, const CUtensorMap* map, int x, int y, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::
          "r"(to),
      "l"(map), "r"(x), "r"(y), "r"(barrier)
      : "memory");
}

__device__ __forceinline__ void loadTileToAll(uint32_t to, const CUtensorMap* map, int x, int y, uint32_t barrier,
                                              uint16_t ctas) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
      " [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
      "l"(map), "r"(x), "r"(y), "r"(barrier), "h"(ctas)
      : "memory");
}

__device__ __forceinline__ void storeTile(const CUtensorMap* map, uint32_t from, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(x), "r"(y),
               "r"(from)
               : "memory");
}

__device__ __forceinline__ void fenceProxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

__device__ __forceinline__ void clusterSync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

__device__ __forceinline__ uint32_t clusterRank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

__device__ __forceinline__ void syncNamed(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

__device__ __forceinline__ void arriveNamed(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// --- wgmma

#define REGS0                                                                                                          \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30," \
  "%31"
#define REGS1                                                                                                          \
  ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%" \
  "60,%61,%62,%63"
#define REGS2                                                                                                          \
  ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%" \
  "92,%93,%94,%95"
#define REGS3                                                                                                       \
  ",%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118" \
  ",%119,%120,%121,%122,%123,%124,%125,%126,%127"
#define OPS8(b)                                                                                               \
  "+f"(d[b]), "+f"(d[b + 1]), "+f"(d[b + 2]), "+f"(d[b + 3]), "+f"(d[b + 4]), "+f"(d[b + 5]), "+f"(d[b + 6]), \
      "+f"(d[b + 7])
#define OPS32(b) OPS8(b), OPS8(b + 8), OPS8(b + 16), OPS8(b + 24)

#define WGMMA(n, regs, s0, s1, s2, s3, s4, s5, ...)                                                                    \
  template <>                                                                                                          \
  struct Wgmma<n> {                                                                                                    \
    static __device__ __forceinline__ void shared(float (&d)[n / 2], uint64_t a, uint64_t b, int add) {                \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #s2                                                            \
                   ", 0;\n"                                                                                            \
                   "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32.bf16.bf16 {" regs "}, %" #s0 ", %" #s1              \
                   ", p, 1, 1, 0, 0;\n}\n"                                                                             \
                   : __VA_ARGS__                                                                                       \
                   : "l"(a), "l"(b), "r"(add));                                                                        \
    }                                                                                                                  \
    static __device__ __forceinline__ void registers(float (&d)[n / 2], const uint32_t (&a)[4], uint64_t b, int add) { \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #s5                                                            \
                   ", 0;\n"                                                                                            \
                   "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32.bf16.bf16 {" regs "}, {%" #s0 ",%" #s1 ",%" #s2     \
                   ",%" #s3 "}, %" #s4 ", p, 1, 1, 0;\n}\n"                                                            \
                   : __VA_ARGS__                                                                                       \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));                                    \
    }                                                                                                                  \
  };

template <int N>
struct Wgmma;
WGMMA(64, REGS0, 32, 33, 34, 35, 36, 37, OPS32(0))
WGMMA(128, REGS0 REGS1, 64, 65, 66, 67, 68, 69, OPS32(0), OPS32(32))
WGMMA(192, REGS0 REGS1 REGS2, 96, 97, 98, 99, 100, 101, OPS32(0), OPS32(32), OPS32(64))
WGMMA(256, REGS0 REGS1 REGS2 REGS3, 128, 129, 130, 131, 132, 133, OPS32(0), OPS32(32), OPS32(64), OPS32(96))

__device__ __forceinline__ void fenceWgmma() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void commitWgmma() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int Left>
__device__ __forceinline__ void waitWgmma() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Left) : "memory");
}

// A K-major tile of rows of 64 bf16 with 128-byte swizzle: 8 rows every 1024 bytes.
__device__ __forceinline__ uint64_t descriptor(uint32_t address) {
  return (static_cast<uint64_t>(address & 0x3ffff) >> 4) | (1ull << 16) | (64ull << 32) | (1ull << 62);
}

enum class Fill { kIntegers, kZeros, kNormal };
enum class Noise { kNone, kShared, kExp2, kFma };

__host__ __device__ inline float integerA(int row, int k) { return static_cast<float>((row * 3 + k * 5) % 7 - 3); }
__host__ __device__ inline float integerB(int row, int k) { return static_cast<float>((row * 5 + k * 3) % 5 - 2); }

__device__ float element(Fill fill, bool isA, int row, int k) {
  if (fill == Fill::kZeros) {
    return 0;
  }
  if (fill == Fill::kIntegers) {
    return isA ? integerA(row, k) : integerB(row, k);
  }
  // The sum of twelve uniform numbers is near enough to a normal one.
  uint32_t state = (row * 64 + k) * 2654435761u + (isA ? 1u : 7u) + blockIdx.x * 40503u;
  float sum = -6;
  for (int i = 0; i < 12; ++i) {
    state = state * 1664525u + 1013904223u;
    sum += static_cast<float>(state >> 8) / 16777216.0f;
  }
  return sum;
}

__device__ void fillTile(unsigned char* tile, Fill fill, bool isA, int firstRow, int rows) {
  for (int i = threadIdx.x; i < rows * 64; i += blockDim.x) {
    uint32_t offset = (i / 64) * 128 + (i % 64) * 2;
    offset ^= (offset >> 7 & 7) << 4;
    *reinterpret_cast<__nv_bfloat16*>(tile + offset) = __float2bfloat16(element(fill, isA, firstRow + i / 64, i % 64));
  }
}

struct WgmmaTimes {
  long long issued;       // until all were issued and committed
  long long done;         // until all had ended
  long long nanoseconds;  // the same as done, by the global timer
  long long noise;        // loads, or exp2, or FMA warp instructions of all other warps meanwhile
};

// Other work of the SM beside the products: one warpgroup that loads 16 bytes a lane, or computes, until `done`.
__device__ long long makeNoise(Noise kind, const unsigned char* tile, volatile int* done, float* sink) {
  float values[8];
  for (int i = 0; i < 8; ++i) {
    values[i] = 0.001f * static_cast<float>(threadIdx.x + i);
  }
  long long count = 0;
  const uint32_t address = sharedAddress(tile) + threadIdx.x % 32 * 16;
  while (*done == 0 && count < (1 << 22)) {
    if (kind == Noise::kShared) {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        float x, y, z, w;
        asm volatile("ld.volatile.shared.v4.f32 {%0,%1,%2,%3}, [%4];"
                     : "=f"(x), "=f"(y), "=f"(z), "=f"(w)
                     : "r"(address + i * 512));
        values[i] += x + y + z + w;
      }
    } else if (kind == Noise::kExp2) {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(values[i]));
      }
    } else {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(values[i]));
      }
    }
    count += 8;
  }
  float sum = 0;
  for (int i = 0; i < 8; ++i) {
    sum += values[i];
  }
  if (sum == 12345.678f) {
    *sink = sum;
  }
  return count;
}

// Warpgroups of `groups * 128` threads multiply 64 x N x 16 `batches * Batch` times; then comes one warpgroup of noise.
// Each batch is a group. Left: groups left in flight by the wait after each; -1: no wait before the end.
template <int N, bool SharedA, int Batch, int Left>
__global__ void __launch_bounds__(384, 1)
    multiply(int groups, int batches, Fill fill, Noise noise, WgmmaTimes* times, float* product) {
  extern __shared__ __align__(1024) unsigned char raw[];
  unsigned char* tiles = raw + (1024 - sharedAddress(raw) % 1024) % 1024;
  __shared__ int done;
  __shared__ unsigned long long noiseCount;
  const int group = threadIdx.x / 128;
  const int lane = threadIdx.x % 128;
  unsigned char* tileB = tiles + 2 * 8192;
  fillTile(tiles, fill, true, 0, 64 * groups);
  fillTile(tileB, fill, false, 0, N);
  if (threadIdx.x == 0) {
    done = 0;
    noiseCount = 0;
  }
  fenceProxy();
  __syncthreads();
  if (group >= groups) {
    const long long count = makeNoise(noise, tileB, &done, product);
    if (lane % 32 == 0) {
      atomicAdd(&noiseCount, static_cast<unsigned long long>(count));
    }
    syncNamed(2, blockDim.x);
    return;
  }
  float d[N / 2];
  for (int i = 0; i < N / 2; ++i) {
    d[i] = 0;
  }
  uint32_t a[4];  // the same 16 of k for each product of a batch: N = 256 leaves no registers for more
  for (int i = 0; i < 4; ++i) {
    const int row = group * 64 + lane / 32 * 16 + lane % 32 / 4 + 8 * (i & 1);
    const int column = lane % 4 * 2 + 8 * (i >> 1);
    const __nv_bfloat162 pair =
        __floats2bfloat162_rn(element(fill, true, row, column), element(fill, true, row, column + 1));
    memcpy(&a[i], &pair, 4);
  }
  const uint64_t descriptorA = descriptor(sharedAddress(tiles) + group * 8192);
  const uint64_t descriptorB = descriptor(sharedAddress(tileB));
  // One product before the clock starts: it sets the accumulators, so that no register is zeroed meanwhile.
  fenceWgmma();
  if (SharedA) {
    Wgmma<N>::shared(d, descriptorA, descriptorB, 0);
  } else {
    Wgmma<N>::registers(d, a, descriptorB, 0);
  }
  commitWgmma();
  waitWgmma<0>();
  syncNamed(1, groups * 128);
  const long long startNs = nanoseconds();
  const long long start = cycles();
#pragma unroll 1
  for (int i = 0; i < batches; ++i) {
    fenceWgmma();
#pragma unroll
    for (int k = 0; k < Batch; ++k) {
      if (SharedA) {
        Wgmma<N>::shared(d, descriptorA + k * 2, descriptorB + k * 2, 1);
      } else {
        Wgmma<N>::registers(d, a, descriptorB + k * 2, 1);
      }
    }
    commitWgmma();
    if (Left >= 0) {
      waitWgmma < Left<0 ? 0 : Left>();
    }
  }
  const long long issued = cycles();
  waitWgmma<0>();
  const long long end = cycles();
  const long long endNs = nanoseconds();
  if (lane == 0 && group == 0) {
    done = 1;
  }
  if (noise != Noise::kNone) {
    syncNamed(2, blockDim.x);
  }
  if (lane == 0) {
    times[blockIdx.x * groups + group] = {
        issued - start, end - start, endNs - startNs,
        static_cast<long long>(*const_cast<volatile unsigned long long*>(&noiseCount))};
  }
  if (product != nullptr && blockIdx.x == 0) {
    for (int v = 0; v < N / 2; ++v) {
      const int row = group * 64 + lane / 32 * 16 + lane % 32 / 4 + 8 * (v >> 1 & 1);
      product[row * N + 8 * (v >> 2) + lane % 4 * 2 + (v & 1)] = d[v];
    }
  }
}

// --- tensor copies

constexpr int kStages = 6;
constexpr int kMaxTile = 32768;
constexpr int kColumns = 4096;

struct Tiles {  // a walk over tiles of 64 columns and boxY rows of a matrix of kColumns columns, row of tiles after row
  int boxY;
  int lastRow;  // rows of tiles, a power of two, less one
  __device__ int x(int i) const { return i % (kColumns / 64) * 64; }
  __device__ int y(int i) const { return (i / (kColumns / 64) & lastRow) * boxY; }
  __device__ uint32_t bytes() const { return 128 * boxY; }
};

struct SharedTiles {
  uint32_t tiles, barriers;
};

__device__ SharedTiles sharedTiles(unsigned char* raw, uint32_t count) {
  __shared__ __align__(8) uint64_t barriers[32];
  if (threadIdx.x == 0) {
    for (int i = 0; i < 16; ++i) {
      initBarrier(sharedAddress(&barriers[i]), 1);
      initBarrier(sharedAddress(&barriers[16 + i]), count);
    }
    fenceBarrierInit();
  }
  __syncthreads();
  const uint32_t base = sharedAddress(raw);
  return {base + (1024 - base % 1024) % 1024, sharedAddress(barriers)};
}

// One load at a time: cycles from the issue to the return of the wait. Two walks, of which the second finds L2 warm.
__global__ void loadLatency(const __grid_constant__ CUtensorMap map, Tiles walk, int stride, int count,
                            long long* times) {
  extern __shared__ __align__(1024) unsigned char raw[];
  const SharedTiles shared = sharedTiles(raw, 1);
  if (threadIdx.x != 0) {
    return;
  }
  uint32_t phase = 0;
  for (int i = 0; i < 2 * count; ++i) {
    const int tile = i % count * stride;
    const int x = walk.x(tile), y = walk.y(tile);
    const long long start = cycles();
    expectBytes(shared.barriers, walk.bytes());
    loadTile(shared.tiles, &map, x, y, shared.barriers);
    wait(shared.barriers, phase);
    times[i] = cycles() - start;
    phase ^= 1;
  }
}

// Loads issued back to back, each to its own barrier: the cycle of each issue's end, then of each arrival.
__global__ void loadIssue(const __grid_constant__ CUtensorMap map, Tiles walk, int count, long long* times) {
  extern __shared__ __align__(1024) unsigned char raw[];
  const SharedTiles shared = sharedTiles(raw, 1);
  if (threadIdx.x != 0) {
    return;
  }
  for (int round = 0; round < 3; ++round) {  // the first one warms L2 and the instruction cache
    const long long start = cycles();
    for (int i = 0; i < count; ++i) {
      expectBytes(shared.barriers + 8 * i, walk.bytes());
      loadTile(shared.tiles + i * walk.bytes(), &map, 64 * i, 0, shared.barriers + 8 * i);
      times[i] = cycles() - start;
    }
    for (int i = 0; i < count; ++i) {
      wait(shared.barriers + 8 * i, round & 1);
      times[16 + i] = cycles() - start;
    }
  }
}

// A ring of kStages tiles, filled again as soon as each is full. Multicast: each of two CTAs loads half a tile for
// both.
template <bool Multicast>
__global__ void loadStream(const __grid_constant__ CUtensorMap map, Tiles walk, int firstStep, int count,
                           long long* times) {
  extern __shared__ __align__(1024) unsigned char raw[];
  const SharedTiles shared = sharedTiles(raw, Multicast ? 2 : 1);
  const uint32_t rank = Multicast ? clusterRank() : 0;
  if (Multicast) {
    clusterSync();
  }
  if (threadIdx.x == 0) {
    const uint32_t bytes = walk.bytes() * (Multicast ? 2 : 1);
    const int first = (Multicast ? blockIdx.x / 2 : blockIdx.x) * firstStep;
    const long long start = cycles();
    const long long startNs = nanoseconds();
    for (int i = 0; i < count + kStages; ++i) {
      const int stage = i % kStages;
      const uint32_t full = shared.barriers + 8 * stage;
      const uint32_t empty = shared.barriers + 128 + 8 * stage;
      const uint32_t parity = (i / kStages - 1) & 1;
      if (i >= kStages) {
        wait(full, parity);
        if (Multicast) {
          arriveAt(empty, 0);
          arriveAt(empty, 1);
        }
      }
      if (i < count) {
        if (Multicast && i >= kStages) {
          wait(empty, parity);
        }
        expectBytes(full, bytes);
        const uint32_t to = shared.tiles + stage * kMaxTile;
        const int tile = first + i;
        if (Multicast) {
          loadTileToAll(to + rank * walk.bytes(), &map, walk.x(2 * tile + rank), walk.y(2 * tile + rank), full, 3);
        } else {
          loadTile(to, &map, walk.x(tile), walk.y(tile), full);
        }
      }
    }
    times[2 * blockIdx.x] = cycles() - start;
    times[2 * blockIdx.x + 1] = nanoseconds() - startNs;
  }
  __syncthreads();
  if (Multicast) {
    clusterSync();
  }
}

// A store: cycles until the issue, until the source may be overwritten, until the write is visible.
__global__ void storeLatency(const __grid_constant__ CUtensorMap map, Tiles walk, int count, long long* times) {
  extern __shared__ __align__(1024) unsigned char raw[];
  const SharedTiles shared = sharedTiles(raw, 1);
  if (threadIdx.x != 0) {
    return;
  }
  for (int i = 0; i < count; ++i) {
    for (int word = 0; word < 4; ++word) {
      asm volatile("st.shared.u32 [%0], %1;" ::"r"(shared.tiles + 4 * word), "r"(i) : "memory");
    }
    fenceProxy();
    const long long start = cycles();
    storeTile(&map, shared.tiles, walk.x(i), walk.y(i));
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    const long long issued = cycles();
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    const long long read = cycles();
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    const long long written = cycles();
    times[3 * i] = issued - start;
    times[3 * i + 1] = read - start;
    times[3 * i + 2] = written - start;
  }
}

// --- barriers

// Two warps hand a phase to and fro; then one warp alone arrives, and waits for what is complete already.
__global__ void barrierLatency(int rounds, long long* times) {
  __shared__ __align__(8) uint64_t barriers[3];
  const uint32_t first = sharedAddress(&barriers[0]), second = first + 8, own = first + 16;
  if (threadIdx.x == 0) {
    initBarrier(first, 1);
    initBarrier(second, 1);
    initBarrier(own, 1);
    fenceBarrierInit();
  }
  __syncthreads();
  const long long start = cycles();
  if (threadIdx.x == 0) {
    for (int i = 0; i < rounds; ++i) {
      arrive(first);
      wait(second, i & 1);
    }
    times[0] = cycles() - start;
  } else if (threadIdx.x == 128) {
    for (int i = 0; i < rounds; ++i) {
      wait(first, i & 1);
      arrive(second);
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    const long long begin = cycles();
    for (int i = 0; i < rounds; ++i) {
      arrive(own);
    }
    const long long arrived = cycles();
    const uint32_t parity = (rounds - 1) & 1;
    int complete = 0;
    for (int i = 0; i < rounds; ++i) {
      complete += tryWait(own, parity) ? 1 : 0;
    }
    const long long waited = cycles();
    times[1] = arrived - begin;
    times[2] = waited - arrived;
    times[3] = complete;
  }
}

// The same between the CTAs of a cluster, and the cluster's own barrier.
__global__ void clusterBarrierLatency(int rounds, long long* times) {
  __shared__ __align__(8) uint64_t barrier;
  const uint32_t own = sharedAddress(&barrier);
  const uint32_t rank = clusterRank();
  if (threadIdx.x == 0) {
    initBarrier(own, 1);
    fenceBarrierInit();
  }
  clusterSync();
  const long long start = cycles();
  if (threadIdx.x == 0 && rank < 2) {
    for (int i = 0; i < rounds; ++i) {
      if (rank == 0) {
        arriveAt(own, 1);
        wait(own, i & 1);
      } else {
        wait(own, i & 1);
        arriveAt(own, 0);
      }
    }
  }
  const long long handed = cycles();
  clusterSync();
  const long long begin = cycles();
  for (int i = 0; i < rounds; ++i) {
    clusterSync();
  }
  const long long end = cycles();
  if (threadIdx.x == 0 && blockIdx.x == 0) {
    times[0] = handed - start;
    times[1] = end - begin;
  }
}

__global__ void namedBarrierLatency(int rounds, long long* times) {
  const int group = threadIdx.x / 128;
  __syncthreads();
  long long start = cycles();
  for (int i = 0; i < rounds; ++i) {
    syncNamed(1 + group, 128);
  }
  long long end = cycles();
  if (threadIdx.x == 0) {
    times[0] = end - start;
  }
  __syncthreads();
  start = cycles();
  for (int i = 0; i < rounds; ++i) {
    syncNamed(3, 256);
  }
  end = cycles();
  if (threadIdx.x == 0) {
    times[1] = end - start;
  }
  __syncthreads();
  // Ping-pong, as the warpgroups of FlashAttention-3 take turns: wait for the turn, give it to the other.
  if (group == 1) {
    arriveNamed(4, 256);
  }
  start = cycles();
  for (int i = 0; i < rounds; ++i) {
    syncNamed(4 + group, 256);
    if (group == 0 || i + 1 < rounds) {
      arriveNamed(5 - group, 256);
    }
  }
  end = cycles();
  if (threadIdx.x == 0) {
    times[2] = end - start;
  }
  start = cycles();
  for (int i = 0; i < rounds; ++i) {
    __syncthreads();
  }
  end = cycles();
  if (threadIdx.x == 0) {
    times[3] = end - start;
  }
}

// A producer gives registers up and two consumers take them; `apart`: they ask only once they are free.
__global__ void __launch_bounds__(384, 1) moveRegisters(bool apart, long long* times) {
  __syncthreads();
  if (threadIdx.x < 128) {
    const long long start = cycles();
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;" ::: "memory");
    const long long end = cycles();
    if (apart) {
      arriveNamed(1, 384);
    }
    if (threadIdx.x == 0) {
      times[0] = end - start;
    }
  } else {
    if (apart) {
      syncNamed(1, 384);
    }
    const long long start = cycles();
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;" ::: "memory");
    const long long end = cycles();
    if (threadIdx.x % 128 == 0) {
      times[threadIdx.x / 128] = end - start;
    }
  }
}

// --- distributed shared memory

enum class Remote { kChain, kLoads, kStores, kBulk };

__global__ void __launch_bounds__(1024, 1) remoteAccess(Remote kind, int rounds, long long* times, float* sink) {
  extern __shared__ __align__(1024) unsigned char raw[];
  __shared__ __align__(8) uint64_t barrier;
  const uint32_t own = sharedAddress(raw);
  for (int i = threadIdx.x; i < 16384; i += blockDim.x) {
    reinterpret_cast<uint32_t*>(raw)[i] = 0;
  }
  if (threadIdx.x == 0) {
    initBarrier(sharedAddress(&barrier), 1);
    fenceBarrierInit();
  }
  uint32_t peer, peerBarrier;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(peer) : "r"(own), "r"(clusterRank() ^ 1));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(peerBarrier)
               : "r"(sharedAddress(&barrier)), "r"(clusterRank() ^ 1));
  clusterSync();
  float sum = 0;
  const long long start = cycles();
  if (kind == Remote::kChain) {
    uint32_t offset = 0;
    if (threadIdx.x == 0) {
      for (int i = 0; i < rounds; ++i) {
        asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(offset) : "r"(peer + offset) : "memory");
      }
    }
    sum = static_cast<float>(offset);
  } else if (kind == Remote::kBulk) {
    if (threadIdx.x == 0) {
      // 16 KiB from the lower to the upper half of the peer; each CTA waits for what comes in.
      for (int i = 0; i < rounds; ++i) {
        expectBytes(sharedAddress(&barrier), 16384);
        asm volatile(
            "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(peer +
                                                                                                                 32768),
            "r"(own), "r"(16384), "r"(peerBarrier)
            : "memory");
        wait(sharedAddress(&barrier), i & 1);
      }
    }
  } else {
    const uint32_t address = peer + threadIdx.x % 512 * 16;
    for (int i = 0; i < rounds; ++i) {
      float4 value[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        if (kind == Remote::kLoads) {
          asm volatile("ld.volatile.shared::cluster.v4.f32 {%0,%1,%2,%3}, [%4];"
                       : "=f"(value[j].x), "=f"(value[j].y), "=f"(value[j].z), "=f"(value[j].w)
                       : "r"(address + j * 8192)
                       : "memory");
        } else {
          asm volatile("st.volatile.shared::cluster.v4.f32 [%0], {%1,%1,%1,%1};" ::"r"(address + j * 8192), "f"(sum)
                       : "memory");
        }
      }
      if (kind == Remote::kLoads) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          sum += value[j].x + value[j].y + value[j].z + value[j].w;
        }
      }
    }
  }
  clusterSync();
  const long long end = cycles();
  if (sum == 12345.678f) {
    *sink = sum;
  }
  if (threadIdx.x == 0) {
    times[blockIdx.x] = end - start;
  }
}

// --- pipes

enum class Op { kExp2, kExp2Pair, kFma, kMax, kPack, kShuffle, kAdd, kLoad16, kLoadMatrix, kStoreMatrix, kStore16 };

template <Op Kind, int Chains>
__global__ void __launch_bounds__(1024, 1) operate(int rounds, long long* times, float* sink) {
  __shared__ __align__(128) unsigned char tile[32768];
  for (int i = threadIdx.x; i < 8192; i += blockDim.x) {
    reinterpret_cast<uint32_t*>(tile)[i] = sharedAddress(tile) + i / 4 * 16;  // a load gives its own address
  }
  // Lanes take consecutive 16 bytes, which are also the rows of the 8 x 8 matrices: no bank conflicts.
  const uint32_t address = sharedAddress(tile) + threadIdx.x % 256 * 16;
  const float other = static_cast<float>(rounds);
  uint32_t v[8];
  for (int i = 0; i < 8; ++i) {
    v[i] = Kind == Op::kLoad16 || Kind == Op::kLoadMatrix ? address : 0x3f000000u + threadIdx.x + i;
  }
  __syncthreads();
  const long long start = cycles();
#pragma unroll 1
  for (int r = 0; r < rounds; ++r) {
#pragma unroll
    for (int j = 0; j < 32; ++j) {
      uint32_t& x = v[j % Chains];
      // Other addresses in each instruction and each round: none is dropped or taken out of the loop.
      const uint32_t stored = address + j * 512 + (r & 1) * 512;
      const uint32_t at = Chains == 1 ? x : stored;
      if (Kind == Op::kExp2) {
        asm volatile("{\n.reg .f32 f;\nmov.b32 f, %0;\nex2.approx.ftz.f32 f, f;\nmov.b32 %0, f;\n}" : "+r"(x));
      } else if (Kind == Op::kExp2Pair) {
        asm volatile("ex2.approx.ftz.bf16x2 %0, %0;" : "+r"(x));
      } else if (Kind == Op::kFma) {
        asm volatile("{\n.reg .f32 f;\nmov.b32 f, %0;\nfma.rn.f32 f, f, f, f;\nmov.b32 %0, f;\n}" : "+r"(x));
      } else if (Kind == Op::kMax) {
        asm volatile("{\n.reg .f32 f;\nmov.b32 f, %0;\nmax.f32 f, f, %1;\nmov.b32 %0, f;\n}" : "+r"(x) : "f"(other));
      } else if (Kind == Op::kPack) {
        asm volatile("{\n.reg .f32 f;\nmov.b32 f, %0;\ncvt.rn.bf16x2.f32 %0, f, f;\n}" : "+r"(x));
      } else if (Kind == Op::kShuffle) {
        asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 0x1f, 0xffffffff;" : "+r"(x));
      } else if (Kind == Op::kAdd) {
        asm volatile("add.f32 %0, %0, %0;" : "+f"(reinterpret_cast<float&>(x)));
      } else if (Kind == Op::kLoad16) {
        uint32_t b, c, d;
        asm volatile("ld.volatile.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(x), "=r"(b), "=r"(c), "=r"(d) : "r"(at));
      } else if (Kind == Op::kStore16) {
        asm volatile("st.volatile.shared.v4.u32 [%0], {%1,%1,%1,%1};" ::"r"(stored), "r"(x));
      } else if (Kind == Op::kLoadMatrix) {
        uint32_t a, b, c, d;
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                     : "r"(at));
        x = Chains == 1 ? a : x ^ a ^ b ^ c ^ d;
      } else {
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%1,%1,%1};" ::"r"(stored), "r"(x));
      }
    }
  }
  __syncthreads();
  const long long end = cycles();
  uint32_t sum = 0;
  for (int i = 0; i < 8; ++i) {
    sum += v[i];
  }
  if (sum == 1234567u) {
    *sink = static_cast<float>(sum);
  }
  if (threadIdx.x == 0) {
    times[0] = end - start;
  }
}

// --- memory

template <bool L1>
__global__ void chase(const uint32_t* next, int steps, int warm, long long* times, uint32_t* sink) {
  uint32_t at = 0;
  long long start = 0;
  for (int i = 0; i < warm + steps; ++i) {
    if (i == warm) {
      start = cycles();
    }
    if (L1) {
      asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(at) : "l"(next + at) : "memory");
    } else {
      asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(at) : "l"(next + at) : "memory");
    }
  }
  times[0] = cycles() - start + (at == 0xffffffffu ? 1 : 0);
  *sink = at;
}

__global__ void makeChain(uint32_t* next, uint32_t count, uint32_t step) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    next[i * 32] = static_cast<uint32_t>((static_cast<uint64_t>(i) + step) % count) * 32;
  }
}

// --- launches

__global__ void empty() {}

__global__ void emptyShared() {
  extern __shared__ unsigned char raw[];
  if (threadIdx.x == 2000) {
    raw[0] = 1;
  }
}

// About `work` cycles, between waiting for the kernel before and letting the next one start.
__global__ void dependent(long long work) {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
  const long long start = cycles();
  while (cycles() - start < work) {
  }
}

// ------------------------------------------------------------------------------------------------------------ host

using Seconds = std::chrono::duration<double>;

[[noreturn]] void fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("probe: ", stderr);
  vfprintf(stderr, format, arguments);
  fputs("\n", stderr);
  va_end(arguments);
  fflush(nullptr);
  _exit(1);
}

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) {
    fail("%s: %s", what, cudaGetErrorString(error));
  }
}
#define CHECK(call) check(call, #call)

// One section's JSON: "name": {"key": value, ...}. Lines are written as soon as they are known.
class Section {
 public:
  explicit Section(const char* name) { printf("\"%s\": {", name); }
  ~Section() {
    int failed = 0;
    if (cudaMemcpyFromSymbol(&failed, g_failed, sizeof failed) != cudaSuccess) {
      failed = 2;
    }
    put("wait_gave_up", failed);
    printf("\n  }");
    fflush(stdout);
  }
  void put(const std::string& key, double value) {
    printf("%s\n    \"%s\": %.6g", first_ ? "" : ",", key.c_str(), std::isfinite(value) ? value : -1.0);
    fflush(stdout);
    first_ = false;
  }

 private:
  bool first_ = true;
};

template <class T>
class Buffer {
 public:
  explicit Buffer(size_t count) : count_(count) {
    CHECK(cudaMalloc(&data_, count * sizeof(T)));
    CHECK(cudaMemset(data_, 0, count * sizeof(T)));
  }
  ~Buffer() { cudaFree(data_); }
  Buffer(const Buffer&) = delete;
  T* get() const { return data_; }
  std::vector<T> read() const {
    std::vector<T> values(count_);
    CHECK(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  T* data_ = nullptr;
  size_t count_;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? -1 : values[values.size() / 2];
}

template <class It>
double medianOf(It begin, It end) {
  return median(std::vector<double>(begin, end));
}

void sync(const char* what) {
  check(cudaGetLastError(), what);
  check(cudaDeviceSynchronize(), what);
}

template <class F>
void launch(F* kernel, int grid, int block, size_t shared, int cluster, bool programmatic, void** arguments) {
  CHECK(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(shared)));
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(grid);
  config.blockDim = dim3(block);
  config.dynamicSmemBytes = shared;
  cudaLaunchAttribute attributes[2];
  config.attrs = attributes;
  if (cluster > 1) {
    attributes[config.numAttrs].id = cudaLaunchAttributeClusterDimension;
    attributes[config.numAttrs].val.clusterDim.x = cluster;
    attributes[config.numAttrs].val.clusterDim.y = 1;
    attributes[config.numAttrs].val.clusterDim.z = 1;
    ++config.numAttrs;
  }
  if (programmatic) {
    attributes[config.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[config.numAttrs].val.programmaticStreamSerializationAllowed = 1;
    ++config.numAttrs;
  }
  CHECK(cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(kernel), arguments));
}

// Milliseconds of the device between two events round `body`.
double eventMs(const std::function<void()>& body) {
  cudaEvent_t start, stop;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&stop));
  CHECK(cudaEventRecord(start));
  body();
  CHECK(cudaEventRecord(stop));
  CHECK(cudaEventSynchronize(stop));
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, start, stop));
  cudaEventDestroy(start);
  cudaEventDestroy(stop);
  return ms;
}

int multiprocessors() {
  int count = 0;
  CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0));
  return count;
}

// --- wgmma

struct Product {
  WgmmaTimes times;  // of the slowest warpgroup of the first CTA
  bool right;
};

template <int N, bool SharedA, int Batch, int Left>
Product multiplied(int groups, int batches, Noise noise) {
  constexpr size_t kShared = 2 * 8192 + 32768 + 1024;
  Buffer<WgmmaTimes> times(groups);
  Buffer<float> product(static_cast<size_t>(groups) * 64 * N);
  std::vector<Product> runs;
  for (int run = 0; run < 4; ++run) {
    Fill fill = Fill::kIntegers;
    WgmmaTimes* timesPointer = times.get();
    float* productPointer = product.get();
    void* arguments[] = {&groups, &batches, &fill, &noise, &timesPointer, &productPointer};
    launch(multiply<N, SharedA, Batch, Left>, 1, 128 * (groups + (noise == Noise::kNone ? 0 : 1)), kShared, 1, false,
           arguments);
    sync("multiply");
    Product result = {times.read()[0], true};
    for (const WgmmaTimes& other : times.read()) {
      result.times.issued = std::max(result.times.issued, other.issued);
      result.times.done = std::max(result.times.done, other.done);
    }
    const std::vector<float> values = product.read();
    for (int row = 0; row < 64 * groups; ++row) {
      for (int column = 0; column < N; ++column) {
        float expected = 0;
        for (int k = 0; k < 16 * Batch; ++k) {
          const float term = integerA(row, SharedA ? k : k % 16) * integerB(column, k);
          expected += term * static_cast<float>(batches + (k < 16 ? 1 : 0));
        }

        result.right = result.right && values[static_cast<size_t>(row) * N + column] == expected;
      }
    }
    runs.push_back(result);
  }
  std::sort(runs.begin() + 1, runs.end(),
            [](const Product& a, const Product& b) { return a.times.done < b.times.done; });
  Product result = runs[2];
  for (const Product& run : runs) {
    result.right = result.right && run.right;
  }
  return result;
}

template <int N, bool SharedA>
void wgmmaOf(Section& section) {
  const std::string name = std::string(SharedA ? "ss" : "rs") + "_n" + std::to_string(N) + "_";
  const Product one = multiplied<N, SharedA, 1, 0>(1, 40, Noise::kNone);
  section.put(name + "1wg_group_of_1_waited", static_cast<double>(one.times.done) / 40);
  bool right = one.right;
  for (int groups = 1; groups <= 2; ++groups) {
    const std::string of = name + std::to_string(groups) + "wg_";
    const Product few = multiplied<N, SharedA, 4, -1>(groups, 8, Noise::kNone);
    const Product many = multiplied<N, SharedA, 4, -1>(groups, 40, Noise::kNone);
    section.put(of + "interval", static_cast<double>(many.times.done - few.times.done) / 128);
    section.put(of + "issue_interval", static_cast<double>(many.times.issued - few.times.issued) / 128);
    section.put(of + "tail", static_cast<double>(many.times.done - many.times.issued));
    const Product waited = multiplied<N, SharedA, 4, 0>(groups, 40, Noise::kNone);
    section.put(of + "group_of_4_waited", static_cast<double>(waited.times.done) / 40);
    const Product behind = multiplied<N, SharedA, 4, 1>(groups, 40, Noise::kNone);
    section.put(of + "group_of_4_one_left", static_cast<double>(behind.times.done) / 40);
    right = right && few.right && many.right && waited.right && behind.right;
    const char* kinds[] = {"none", "lds128", "ex2", "ffma"};
    for (Noise noise : {Noise::kShared, Noise::kExp2, Noise::kFma}) {
      const Product beside = multiplied<N, SharedA, 4, -1>(groups, 256, noise);
      right = right && beside.right;
      const std::string with = of + "beside_" + kinds[static_cast<int>(noise)];
      section.put(with + "_interval", static_cast<double>(beside.times.done) / 1024);
      section.put(with + "_per_cycle",
                  static_cast<double>(beside.times.noise) / static_cast<double>(beside.times.done));
    }
  }
  section.put(name + "right", right);
}

void wgmmaSection() {
  Section section("wgmma");
  wgmmaOf<64, true>(section);
  wgmmaOf<128, true>(section);
  wgmmaOf<192, true>(section);
  wgmmaOf<256, true>(section);
  wgmmaOf<64, false>(section);
  wgmmaOf<128, false>(section);
  wgmmaOf<192, false>(section);
  wgmmaOf<256, false>(section);
}

void sustainedSection() {
  Section section("sustained");
  const int sms = multiprocessors();
  const char* fills[] = {"integers", "zeros", "normal"};
  for (Fill fill : {Fill::kZeros, Fill::kNormal}) {
    Buffer<WgmmaTimes> times(static_cast<size_t>(sms) * 2);
    int groups = 2, batches = 4000;
    Noise noise = Noise::kNone;
    WgmmaTimes* timesPointer = times.get();
    float* product = nullptr;
    void* arguments[] = {&groups, &batches, &fill, &noise, &timesPointer, &product};
    const auto run = [&] {
      launch(multiply<256, true, 4, -1>, sms, 256, 2 * 8192 + 32768 + 1024, 1, false, arguments);
    };
    run();
    sync("sustained");
    const double flop = 2.0 * 64 * 256 * 16 * 4 * batches * groups * sms;
    std::vector<double> rates;
    const auto begin = std::chrono::steady_clock::now();
    while (Seconds(std::chrono::steady_clock::now() - begin).count() < 2.0) {
      rates.push_back(flop / eventMs([&] {
                        for (int i = 0; i < 10; ++i) {
                          run();
                        }
                      }) *
                      10 / 1e9);
    }
    const std::vector<WgmmaTimes> last = times.read();
    const std::string name = fills[static_cast<int>(fill)];
    section.put(name + "_tflops_first", rates.front());
    section.put(name + "_tflops_end", medianOf(rates.end() - std::min<size_t>(rates.size(), 5), rates.end()));
    section.put(name + "_mhz_end", static_cast<double>(last[0].done) * 1e3 / static_cast<double>(last[0].nanoseconds));
    section.put(name + "_interval", static_cast<double>(last[0].done) / (4.0 * batches));
  }
}

// --- tensor copies

using Encode = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*, const cuuint64_t*,
                            const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                            CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

CUtensorMap tensorMap(void* data, uint64_t columns, uint64_t rows, uint32_t boxColumns, uint32_t boxRows) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found));
  if (found != cudaDriverEntryPointSuccess || function == nullptr) {
    fail("the driver has no cuTensorMapEncodeTiled");
  }
  CUtensorMap map;
  const cuuint64_t extents[] = {columns, rows};
  const cuuint64_t strides[] = {columns * 2};
  const cuuint32_t box[] = {boxColumns, boxRows};
  const cuuint32_t steps[] = {1, 1};
  const CUresult result = reinterpret_cast<Encode>(function)(
      &map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, data, extents, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    fail("cuTensorMapEncodeTiled: error %d", static_cast<int>(result));
  }
  return map;
}

constexpr size_t kRing = static_cast<size_t>(kStages) * kMaxTile + 1024;

// Cycles an SM needs for one of its `count` tiles, the median over SMs, and the rate of all of them by events.
void streamed(Section& section, const std::string& name, void* data, int rows, int boxRows, int sms, int firstStep,
              int count, bool multicast) {
  CUtensorMap map = tensorMap(data, kColumns, rows, 64, boxRows);
  Tiles walk = {boxRows, rows / boxRows - 1};
  Buffer<long long> times(static_cast<size_t>(sms) * 2);
  long long* timesPointer = times.get();
  void* arguments[] = {&map, &walk, &firstStep, &count, &timesPointer};
  double ms = 0;
  for (int run = 0; run < 3; ++run) {
    ms = eventMs([&] {
      if (multicast) {
        launch(loadStream<true>, sms, 32, kRing, 2, false, arguments);
      } else {
        launch(loadStream<false>, sms, 32, kRing, 1, false, arguments);
      }
    });
    sync("loadStream");
  }
  const std::vector<long long> values = times.read();
  std::vector<double> perTile;
  for (int i = 0; i < sms; ++i) {
    perTile.push_back(static_cast<double>(values[2 * i]) / count);
  }
  const double bytes = 128.0 * boxRows * (multicast ? 2 : 1);  // received by one SM
  section.put(name + "_cycles_a_tile", median(perTile));
  section.put(name + "_bytes_per_cycle_and_sm", bytes / median(perTile));
  section.put(name + "_gb_per_s_received", bytes * count * sms / ms / 1e6);
}

void tmaSection() {
  Section section("tma");
  constexpr int kRows = 262144;  // 2 GiB
  const int sms = multiprocessors();
  Buffer<uint16_t> matrix(static_cast<size_t>(kColumns) * kRows);
  for (int boxRows : {8, 64, 128, 256}) {
    const std::string name = "load_" + std::to_string(boxRows * 128) + "b_";
    CUtensorMap map = tensorMap(matrix.get(), kColumns, kRows, 64, boxRows);
    Tiles walk = {boxRows, kRows / boxRows - 1};
    int stride = 64 * 3 + 1, count = 128;
    Buffer<long long> times(2 * static_cast<size_t>(count));
    long long* timesPointer = times.get();
    void* arguments[] = {&map, &walk, &stride, &count, &timesPointer};
    launch(loadLatency, 1, 32, kMaxTile + 1024, 1, false, arguments);  // instructions and the map into the caches
    sync("loadLatency");
    CHECK(cudaMemset(matrix.get() + size_t{kColumns} * kRows / 2, 0, 512 << 20));  // other data into L2
    launch(loadLatency, 1, 32, kMaxTile + 1024, 1, false, arguments);
    sync("loadLatency");
    const std::vector<long long> values = times.read();
    section.put(name + "dram_latency", medianOf(values.begin() + 8, values.begin() + count));
    section.put(name + "l2_latency", medianOf(values.begin() + count + 8, values.end()));
    int issues = std::min(16, kStages * kMaxTile / (boxRows * 128));
    Buffer<long long> issued(32);
    long long* issuedPointer = issued.get();
    void* issueArguments[] = {&map, &walk, &issues, &issuedPointer};
    launch(loadIssue, 1, 32, kRing, 1, false, issueArguments);
    sync("loadIssue");
    const std::vector<long long> at = issued.read();
    section.put(name + "issue_interval", static_cast<double>(at[issues - 1] - at[0]) / (issues - 1));
    section.put(name + "first_arrival", static_cast<double>(at[16]));
    section.put(name + "arrival_interval", static_cast<double>(at[16 + issues - 1] - at[16]) / (issues - 1));
  }
  // 16 MiB stay in L2: all SMs walk through the same tiles, each from another one on. DRAM: 12 MiB an SM.
  for (int boxRows : {64, 128, 256}) {
    const std::string bytes = std::to_string(boxRows * 128) + "b";
    streamed(section, "stream_l2_one_sm_" + bytes, matrix.get(), 2048, boxRows, 1, 0, 512, false);
    streamed(section, "stream_l2_all_" + bytes, matrix.get(), 2048, boxRows, sms, 5, 1024, false);
    streamed(section, "stream_dram_all_" + bytes, matrix.get(), kRows, boxRows, sms, 12 * 1048576 / (boxRows * 128),
             12 * 1048576 / (boxRows * 128), false);
  }
  streamed(section, "stream_l2_multicast_pair_2x8192b", matrix.get(), 2048, 64, 2, 0, 512, true);
  streamed(section, "stream_l2_multicast_all_2x8192b", matrix.get(), 2048, 64, sms / 2 * 2, 5, 1024, true);
  {
    CUtensorMap map = tensorMap(matrix.get(), kColumns, kRows, 64, 64);
    Tiles walk = {64, kRows / 64 - 1};
    int count = 64;
    Buffer<long long> times(3 * static_cast<size_t>(count));
    long long* timesPointer = times.get();
    void* arguments[] = {&map, &walk, &count, &timesPointer};
    launch(storeLatency, 1, 32, kMaxTile + 1024, 1, false, arguments);
    launch(storeLatency, 1, 32, kMaxTile + 1024, 1, false, arguments);
    sync("storeLatency");
    const std::vector<long long> values = times.read();
    const char* names[] = {"store_8192b_issue", "store_8192b_read", "store_8192b_written"};
    for (int what = 0; what < 3; ++what) {
      std::vector<double> one;
      for (int i = 4; i < count; ++i) {
        one.push_back(static_cast<double>(values[3 * i + what]));
      }
      section.put(names[what], median(one));
    }
  }
}

// --- barriers

void barrierSection() {
  Section section("barriers");
  int rounds = 64;
  Buffer<long long> times(8);
  long long* pointer = times.get();
  void* arguments[] = {&rounds, &pointer};
  const auto run = [&](auto* kernel, int grid, int block, int cluster) {
    for (int i = 0; i < 3; ++i) {
      launch(kernel, grid, block, 0, cluster, false, arguments);
      sync("barriers");
    }
    return times.read();
  };
  std::vector<long long> at = run(barrierLatency, 1, 256, 1);
  section.put("mbarrier_arrive_to_wait", static_cast<double>(at[0]) / rounds / 2);
  section.put("mbarrier_arrive", static_cast<double>(at[1]) / rounds);
  section.put("mbarrier_try_wait_complete", static_cast<double>(at[2]) / rounds);
  section.put("mbarrier_try_wait_right", at[3] == rounds);
  at = run(namedBarrierLatency, 1, 256, 1);
  section.put("bar_sync_128", static_cast<double>(at[0]) / rounds);
  section.put("bar_sync_256", static_cast<double>(at[1]) / rounds);
  section.put("bar_ping_pong_turn", static_cast<double>(at[2]) / rounds / 2);
  section.put("syncthreads_256", static_cast<double>(at[3]) / rounds);
  for (int cluster : {2, 4, 8}) {
    at = run(clusterBarrierLatency, cluster, 128, cluster);
    section.put("cluster_" + std::to_string(cluster) + "_remote_arrive_to_wait",
                static_cast<double>(at[0]) / rounds / 2);
    section.put("cluster_" + std::to_string(cluster) + "_barrier", static_cast<double>(at[1]) / rounds);
  }
  for (bool apart : {false, true}) {
    bool apartArgument = apart;
    void* registerArguments[] = {&apartArgument, &pointer};
    for (int i = 0; i < 3; ++i) {
      launch(moveRegisters, 1, 384, 0, 1, false, registerArguments);
      sync("moveRegisters");
    }
    at = times.read();
    const std::string name = apart ? "setmaxnreg_apart_" : "setmaxnreg_together_";
    section.put(name + "dec", static_cast<double>(at[0]));
    section.put(name + "inc_first", static_cast<double>(at[1]));
    section.put(name + "inc_second", static_cast<double>(at[2]));
  }
}

// --- distributed shared memory

void clusterSection() {
  Section section("dsmem");
  const int sms = multiprocessors() / 2 * 2;
  Buffer<long long> times(static_cast<size_t>(sms));
  Buffer<float> sink(1);
  for (int grid : {2, sms}) {
    const std::string which = grid == 2 ? "pair_" : "all_";
    const auto run = [&](Remote kind, int block, int rounds) {
      long long* pointer = times.get();
      float* sinkPointer = sink.get();
      void* arguments[] = {&kind, &rounds, &pointer, &sinkPointer};
      for (int i = 0; i < 3; ++i) {
        launch(remoteAccess, grid, block, 65536, 2, false, arguments);
        sync("remoteAccess");
      }
      const std::vector<long long> values = times.read();
      return medianOf(values.begin(), values.begin() + grid);
    };
    section.put(which + "load_latency", run(Remote::kChain, 32, 256) / 256);
    const double loads = run(Remote::kLoads, 1024, 80) - run(Remote::kLoads, 1024, 16);
    section.put(which + "load_bytes_per_cycle", 64.0 * 4 * 16 * 1024 / loads);
    const double stores = run(Remote::kStores, 1024, 80) - run(Remote::kStores, 1024, 16);
    section.put(which + "store_bytes_per_cycle", 64.0 * 4 * 16 * 1024 / stores);
    section.put(which + "bulk_16384b", run(Remote::kBulk, 32, 64) / 64);
  }
}

// --- pipes

template <Op Kind>
void pipeOf(Section& section, const char* name) {
  Buffer<long long> times(1);
  Buffer<float> sink(1);
  const auto run = [&](auto* kernel, int block, int rounds) {
    for (int i = 0; i < 3; ++i) {
      kernel<<<1, block>>>(rounds, times.get(), sink.get());
      sync(name);
    }
    return static_cast<double>(times.read()[0]);
  };
  section.put(std::string(name) + "_latency",
              (run(operate<Kind, 1>, 32, 40) - run(operate<Kind, 1>, 32, 8)) / (32 * 32));
  for (int warps : {4, 8, 16}) {
    const double cycles = run(operate<Kind, 8>, 32 * warps, 40) - run(operate<Kind, 8>, 32 * warps, 8);
    section.put(std::string(name) + "_cycles_an_sm_" + std::to_string(warps) + "w", cycles / (32.0 * 32 * warps));
  }
}

void pipeSection() {
  Section section("pipes");
  pipeOf<Op::kExp2>(section, "ex2");
  pipeOf<Op::kExp2Pair>(section, "ex2_bf16x2");
  pipeOf<Op::kFma>(section, "ffma");
  pipeOf<Op::kMax>(section, "fmnmx");
  pipeOf<Op::kPack>(section, "f2fp_bf16x2");
  pipeOf<Op::kShuffle>(section, "shfl");
  pipeOf<Op::kAdd>(section, "fadd");
  pipeOf<Op::kLoad16>(section, "lds128");
  pipeOf<Op::kStore16>(section, "sts128");
  pipeOf<Op::kLoadMatrix>(section, "ldmatrix_x4");
  pipeOf<Op::kStoreMatrix>(section, "stmatrix_x4");
}

// --- memory

void memorySection() {
  Section section("memory");
  Buffer<long long> times(1);
  Buffer<uint32_t> sink(1);
  const auto run = [&](const char* name, auto* kernel, size_t lines, uint32_t step, int steps, int warm) {
    Buffer<uint32_t> chain(lines * 32);
    makeChain<<<1024, 256>>>(chain.get(), static_cast<uint32_t>(lines), step);
    sync("makeChain");
    std::vector<double> runs;
    for (int i = 0; i < 3; ++i) {
      kernel<<<1, 1>>>(chain.get(), steps, warm, times.get(), sink.get());
      sync(name);
      runs.push_back(static_cast<double>(times.read()[0]) / steps);
    }
    section.put(name, median(runs));
  };
  run("l1_latency", chase<true>, 64, 17, 1024, 128);
  run("l2_latency", chase<false>, 16384, 4099, 16384, 16384);
  run("dram_latency", chase<false>, size_t{1} << 23, 5000011, 4096, 64);
}

// --- launches

void launchSection() {
  Section section("launch");
  const int sms = multiprocessors();
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  empty<<<1, 32>>>();
  sync("empty");
  section.put("empty_us", eventMs([&] {
                for (int i = 0; i < 1000; ++i) {
                  empty<<<1, 32>>>();
                }
              }));
  const auto graphUs = [&](int kernels, const std::function<void()>& body) {
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < kernels; ++i) {
      body();
    }
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    std::vector<double> runs;
    for (int i = 0; i < 5; ++i) {
      cudaEvent_t start, stop;
      CHECK(cudaEventCreate(&start));
      CHECK(cudaEventCreate(&stop));
      CHECK(cudaEventRecord(start, stream));
      CHECK(cudaGraphLaunch(executable, stream));
      CHECK(cudaEventRecord(stop, stream));
      CHECK(cudaEventSynchronize(stop));
      float ms = 0;
      CHECK(cudaEventElapsedTime(&ms, start, stop));
      runs.push_back(ms * 1e3);
    }
    return median(runs);
  };
  const auto perKernel = [&](const std::function<void()>& body) {
    return (graphUs(220, body) - graphUs(20, body)) / 200;
  };
  section.put("graph_empty_us", perKernel([&] { empty<<<1, 32, 0, stream>>>(); }));
  section.put("graph_empty_all_sms_us", perKernel([&] { empty<<<sms, 1024, 0, stream>>>(); }));
  // How long an SM needs for a CTA that does nothing: small ones, large ones, and one at a time.
  const auto perCta = [&](int block, size_t shared) {
    CHECK(cudaFuncSetAttribute(emptyShared, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared)));
    const auto us = [&](int waves) {
      return graphUs(1, [&] { emptyShared<<<sms * waves, block, shared, stream>>>(); });
    };
    return (us(520) - us(20)) / 500;
  };
  section.put("cta_128_threads_us", perCta(128, 0));
  section.put("cta_384_threads_alone_us", perCta(384, 200 * 1024));
  section.put("cta_1024_threads_us", perCta(1024, 0));
  for (bool programmatic : {false, true}) {
    for (long long work : {0ll, 5000ll}) {
      const double us = perKernel([&] {
        cudaLaunchConfig_t config = {};
        config.gridDim = dim3(sms);
        config.blockDim = dim3(256);
        config.stream = stream;
        cudaLaunchAttribute attribute = {};
        attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attribute.val.programmaticStreamSerializationAllowed = 1;
        config.attrs = &attribute;
        config.numAttrs = programmatic ? 1 : 0;
        CHECK(cudaLaunchKernelEx(&config, dependent, work));
      });
      section.put((programmatic ? "dependent_" : "serial_") + std::to_string(work) + "_cycles_us", us);
    }
  }
}

// --- the driver

struct SectionOf {
  const char* name;
  void (*run)();
  double seconds;
};

constexpr SectionOf kSections[] = {
    {"barriers", barrierSection, 6}, {"wgmma", wgmmaSection, 12},         {"tma", tmaSection, 12},
    {"pipes", pipeSection, 6},       {"dsmem", clusterSection, 6},        {"launch", launchSection, 8},
    {"memory", memorySection, 6},    {"sustained", sustainedSection, 10},
};
constexpr double kAllSeconds = 56;

void deviceSection() {
  cudaDeviceProp device;
  CHECK(cudaGetDeviceProperties(&device, 0));
  int driver = 0, clock = 0;
  CHECK(cudaDriverGetVersion(&driver));
  CHECK(cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, 0));
  printf(
      "\"device\": {\n    \"name\": \"%s\",\n    \"capability\": %d,\n    \"multiprocessors\": %d,\n"
      "    \"l2_bytes\": %d,\n    \"clock_mhz\": %d,\n    \"driver\": %d\n  }",
      device.name, device.major * 10 + device.minor, device.multiProcessorCount, device.l2CacheSize, clock / 1000,
      driver);
  fflush(stdout);
  if (device.major != 9 || device.minor != 0) {
    fail("needs a GPU of compute capability 9.0, %s has %d.%d", device.name, device.major, device.minor);
  }
}

// The output of `run` in a process of its own; empty, with `why`, if it did not end well in time.
std::string inProcess(void (*run)(), double seconds, std::string& why) {
  int ends[2];
  if (pipe(ends) != 0) {
    fail("pipe: %s", strerror(errno));
  }
  fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 1);
    close(ends[0]);
    close(ends[1]);
    run();
    fflush(nullptr);
    _exit(0);
  }
  close(ends[1]);
  const auto begin = std::chrono::steady_clock::now();
  std::string text;
  char buffer[4096];
  bool late = false;
  for (;;) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    timeval step = {0, 100000};
    const bool ready = select(ends[0] + 1, &set, nullptr, nullptr, &step) > 0;
    if (ready) {
      const ssize_t got = read(ends[0], buffer, sizeof buffer);
      if (got <= 0) {
        break;
      }
      text.append(buffer, static_cast<size_t>(got));
    }
    if (!late && Seconds(std::chrono::steady_clock::now() - begin).count() > seconds) {
      late = true;
      kill(child, SIGKILL);  // what it has written already is read to its end
    }
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  why = late ? "time is up" : WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "" : "failed";
  return text;
}

int main(int count, char** arguments) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 1; i < count; ++i) {
    if (std::none_of(std::begin(kSections), std::end(kSections),
                     [&](const SectionOf& section) { return strcmp(section.name, arguments[i]) == 0; })) {
      fprintf(stderr, "probe: no section '%s'; sections:", arguments[i]);
      for (const SectionOf& section : kSections) {
        fprintf(stderr, " %s", section.name);
      }
      fprintf(stderr, "\n");
      return 2;
    }
  }
  std::string why;
  const std::string device = inProcess(deviceSection, 10, why);
  if (!why.empty()) {
    fprintf(stderr, "probe: no GPU was found that can be measured\n");
    return 3;
  }
  printf("{\n  \"schema\": \"roofgen.probe.1\",\n  %s", device.c_str());
  bool well = true;
  for (const SectionOf& section : kSections) {
    if (count > 1 && std::none_of(arguments + 1, arguments + count,
                                  [&](const char* name) { return strcmp(name, section.name) == 0; })) {
      continue;
    }
    const double left = kAllSeconds - Seconds(std::chrono::steady_clock::now() - begin).count();
    if (left < 2) {
      printf(",\n  \"%s_error\": \"time is up\"", section.name);
      well = false;
      continue;
    }
    std::string text = inProcess(section.run, std::min(left, section.seconds), why);
    if (!why.empty()) {
      // What it wrote before is kept: it ends after a whole value, because values are written whole.
      printf(",\n  \"%s_error\": \"%s\"", section.name, why.c_str());
      well = false;
      if (!text.empty()) {
        text += "\n  }";
      }
    }
    if (!text.empty()) {
      printf(",\n  %s", text.c_str());
    }
    fflush(stdout);
  }
  printf("\n}\n");
  return well ? 0 : 1;
}
