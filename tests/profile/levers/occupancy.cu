// Walks through memory by 2 warps of an SM, as 100 KB of shared memory leave room for, or by 16.
// grid: 1728  block: 32  slow smem: 81920  fast smem: 8192  device: a100-sxm-80
// args: [{"name": "next", "type": "i32", "size": 4194304, "fill": "iota"}, {"name": "y", "type": "i32", "size": 55296}]
// gain: 5
__global__ void walk(const int* next, int* y) {
  extern __shared__ int room[];
  int at = blockIdx.x * 9709 + threadIdx.x;
  room[threadIdx.x] = at;
#pragma unroll 1
  for (int i = 0; i < 32; ++i) at = next[(at + 40503) & 4194303];
  y[blockIdx.x * blockDim.x + threadIdx.x] = at + room[threadIdx.x];
}
