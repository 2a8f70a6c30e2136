// Two lanes in three add to the same word of shared memory: their additions are made one after the other.
// grid: 432  block: 256  device: a100-sxm-80
// args: [{"name": "x", "type": "i32", "size": 110592, "fill": "iota"}, {"name": "y", "type": "i32", "size": 64, "fill": 0}]
// limiter: shared memory
__global__ void histogram(const int* x, int* y) {
  __shared__ int bins[64];
  if (threadIdx.x < 64) bins[threadIdx.x] = 0;
  __syncthreads();
  const int v = x[blockIdx.x * blockDim.x + threadIdx.x];
#pragma unroll 1
  for (int k = 0; k < 64; ++k) atomicAdd(&bins[v % 3 == 0 ? (v + k) & 63 : k], v);  // <- here
  __syncthreads();
  if (threadIdx.x < 64) atomicAdd(&y[threadIdx.x], bins[threadIdx.x]);
}
