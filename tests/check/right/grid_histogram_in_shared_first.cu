// grid: 8  block: 64
// args: [{"type": "i32", "size": 512, "fill": "iota"}, {"name": "y", "type": "i32", "size": 16, "fill": 0, "expect": 32}]
__global__ void count(const int* x, int* y) {
  __shared__ int part[16];
  if (threadIdx.x < 16) part[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(part + x[blockIdx.x * 64 + threadIdx.x] % 16, 1);
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(y + threadIdx.x, part[threadIdx.x]);
}
