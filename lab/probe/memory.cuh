// Section `memory`: latency of dependent loads.
#pragma once

#include "host.cuh"

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
