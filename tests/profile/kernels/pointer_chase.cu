// Each load has the index of the next one as its result: next[i] is i, so that the walk is known.
// grid: 108  block: 32  device: a100-sxm-80
// args: [{"name": "next", "type": "i32", "size": 1048576, "fill": "iota"}, {"name": "y", "type": "i32", "size": 3456}]
// limiter: latency of device memory
__global__ void walk(const int* next, int* y) {
  int at = blockIdx.x * 9709 + threadIdx.x;
#pragma unroll 1
  for (int i = 0; i < 256; ++i) at = next[(at + 40503) & 1048575];  // <- here
  y[blockIdx.x * blockDim.x + threadIdx.x] = at;
}
