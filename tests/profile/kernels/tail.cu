// 108 SMs hold 324 CTAs of this size at a time: 36 CTAs of 360 run in a second wave, as long as the first.
// grid: 360  block: 64  device: a100-sxm-80
// args: [{"name": "y", "type": "i32", "size": 23040}]
// limiter: tail of the grid
__global__ void chase(int* y) {
  __shared__ int next[12000];
  for (int i = threadIdx.x; i < 12000; i += 64) next[i] = (i + 64) % 12000;
  __syncthreads();
  int at = threadIdx.x;
  for (int k = 0; k < 4096; ++k)
    at = next[at];  // <- here
  y[blockIdx.x * 64 + threadIdx.x] = at;
}
