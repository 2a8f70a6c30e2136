// Each warp adds up 32 of 100 numbers and writes the sum.
// All lanes shuffle; those past the end add 0.
// grid: 2  block: 64
// args: [{"type": "i32", "size": 100, "fill": 1}, {"name": "y", "type": "i32", "size": 4, "expect": [32, 32, 32, 4]}, {"type": "i32", "value": 100}]
// with shuffle_of_lanes_that_left: partial-warp at 11
//   The lanes past the end have left when the last warp shuffles, but the mask names them: the values taken from them
//   are undefined. brucefan1983/CUDA-Programming pull request 51, NVIDIA/cccl issue 854. PTX ISA, shfl.sync.
__device__ int sum_of_warp(int value) {
#pragma unroll
  for (int step = 16; step; step /= 2) {
    const int other = __shfl_down_sync(0xffffffff, value, step);
    value += other;
  }
  return value;
}

__global__ void sums(const int* x, int* y, int n) {
  const int lane = threadIdx.x % 32;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int sum = sum_of_warp(i < n ? x[i] : 0);
  // edit shuffle_of_lanes_that_left: if (i >= n) return; const int sum = sum_of_warp(x[i]);
  if (lane == 0) y[i / 32] = sum;
}
