// Section `barriers`: mbarriers, named barriers, cluster barriers, setmaxnreg.
#pragma once

#include "host.cuh"

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
