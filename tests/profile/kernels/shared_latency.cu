// A walk through a table in shared memory by one warp of each SM.
// grid: 108  block: 32  device: a100-sxm-80
// args: [{"name": "y", "type": "i32", "size": 3456}]
// limiter: latency of shared memory
__global__ void walk(int* y) {
  __shared__ int next[256];
  for (int k = threadIdx.x; k < 256; k += 32) next[k] = (k + 32) & 255;
  __syncthreads();
  int at = threadIdx.x;
#pragma unroll 32
  for (int k = 0; k < 1024; ++k) at = next[at];  // <- here
  y[blockIdx.x * 32 + threadIdx.x] = at;
}
