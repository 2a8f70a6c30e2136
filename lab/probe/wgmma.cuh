// Sections `wgmma` and `sustained`: intervals of products, alone and beside other work, and the rate under load.
#pragma once

#include <cuda_bf16.h>

#include <cstring>

#include "host.cuh"

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
