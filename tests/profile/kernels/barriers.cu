// 32 warps meet at one barrier after the other, with next to no work between them.
// grid: 108  block: 1024  device: a100-sxm-80
// args: [{"name": "y", "type": "i32", "size": 110592}]
// limiter: barriers
__global__ void meet(int* y) {
#pragma unroll 1
  for (int i = 0; i < 256; ++i)
    __syncthreads();  // <- here
  y[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}
