// Three warps add up eight rows of 32 numbers that a fourth warp writes into one slot between two mbarriers.
// One lane arrives for each warp, behind a barrier of the warp.
// grid: 1  block: 128
// args: [{"type": "i32", "size": 256, "fill": 1}, {"name": "y", "type": "i32", "size": 96, "expect": 8}]
// with every_lane_arrives: barrier-order at hopper.cuh:11, deadlock at hopper.cuh:18
//   The empty barrier counts one arrival for each reading warp, but every lane arrives: the phase ends when the lanes
//   of one warp have arrived, and further arrivals fall into later phases. Noted of deepseek-ai/DeepEP pull request
//   293. PTX ISA, mbarrier.arrive (the pending count must not be exceeded).
#include "hopper.cuh"

__global__ void sum_rows(const int* x, int* y) {
  __shared__ int slot[32];
  __shared__ unsigned long long full, empty;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) init(&full, 32), init(&empty, 3);
  __syncthreads();
  int sum = 0;
  for (int i = 0; i < 8; ++i) {
    if (warp == 0) {
      wait(&empty, i & 1 ^ 1);
      slot[lane] = x[32 * i + lane];
      arrive(&full);
    } else {
      wait(&full, i & 1);
      sum += slot[31 - lane];
      __syncwarp();
      if (lane == 0) arrive(&empty);
      // edit every_lane_arrives: arrive(&empty);
    }
  }
  if (warp > 0) y[threadIdx.x - 32] = sum;
}
