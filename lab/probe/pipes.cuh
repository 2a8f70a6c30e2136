// Section `pipes`: latency and issue interval of single instructions.
#pragma once

#include "host.cuh"

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
