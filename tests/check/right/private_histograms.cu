// grid: 4  block: 64
// args: [{"name": "x", "type": "u32", "size": 1024, "fill": "iota"}, {"name": "bins", "type": "u32", "size": 16, "fill": 0, "expect": 64}]
__global__ void histogram(const unsigned* x, unsigned* bins) {
  __shared__ unsigned own[16];
  if (threadIdx.x < 16) own[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * 64 + threadIdx.x; i < 1024; i += 256) atomicAdd(&own[x[i] % 16], 1);
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}
