// Section `dsmem`: accesses to the shared memory of another CTA of the cluster.
#pragma once

#include "host.cuh"

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
