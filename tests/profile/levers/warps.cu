// The same sums by 4 or by 8 warps on each SM, each of which waits for one load at a time.
// grid: 108  slow block: 128  fast block: 256  device: a100-sxm-80
// args: [{"name": "x", "type": "f32", "size": 1769472}, {"name": "y", "type": "f32", "size": 27648}]
// gain: 1.6
__global__ void sum(const float* x, float* y) {
  float s = 0;
#pragma unroll 1
  for (unsigned i = threadIdx.x; i < 16384; i += blockDim.x) s += x[blockIdx.x * 16384 + i];
  y[blockIdx.x * blockDim.x + threadIdx.x] = s;
}
