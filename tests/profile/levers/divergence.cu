// The two ways of a branch by lanes, or by warps.
// grid: 432  block: 256  device: a100-sxm-80
// args: [{"name": "y", "type": "f32", "size": 110592}]
// slow: -DOF=1  fast: -DOF=32  gain: 1.5
__global__ void ways(float* y) {
  float a = threadIdx.x, b = blockIdx.x;
#pragma unroll 1
  for (int k = 0; k < 64; ++k) {
    if (threadIdx.x / OF % 2) {
#pragma unroll
      for (int j = 0; j < 32; ++j) a = a * b + 1.5f;
    } else {
#pragma unroll
      for (int j = 0; j < 32; ++j) b = b * a + 2.5f;
    }
  }
  y[blockIdx.x * 256 + threadIdx.x] = a + b;
}
