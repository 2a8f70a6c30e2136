// 16 lanes of a warp add to one word of shared memory, or each to its own. For one word of all, ptxas adds first.
// grid: 216  block: 256  device: a100-sxm-80
// args: [{"name": "x", "type": "i32", "size": 55296, "fill": "iota"}, {"name": "y", "type": "i32", "size": 55296}]
// slow: -DWORDS=2  fast: -DWORDS=256  gain: 1.5
__global__ void count(const int* x, int* y) {
  __shared__ int sums[256];
  sums[threadIdx.x] = 0;
  const int v = x[blockIdx.x * 256 + threadIdx.x];
  __syncthreads();
#pragma unroll 1
  for (int k = 0; k < 128; ++k) atomicAdd(&sums[threadIdx.x % WORDS], v + k);
  __syncthreads();
  y[blockIdx.x * 256 + threadIdx.x] = sums[threadIdx.x];
}
