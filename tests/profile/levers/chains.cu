// The same multiply-adds in one chain a thread, or in four.
// grid: 108  block: 128  device: a100-sxm-80
// args: [{"name": "y", "type": "f32", "size": 13824}, {"type": "f32", "value": 0.5}]
// slow: -DCHAINS=1  fast: -DCHAINS=4  gain: 1.7
__global__ void poly(float* y, float p) {
  float x[CHAINS], s = 0;
  for (int c = 0; c < CHAINS; ++c) x[c] = threadIdx.x + c;
#pragma unroll 16
  for (int k = 0; k < 1024 / CHAINS; ++k)
#pragma unroll
    for (int c = 0; c < CHAINS; ++c) x[c] = x[c] * p + 1;
  for (int c = 0; c < CHAINS; ++c) s += x[c];
  y[blockIdx.x * 128 + threadIdx.x] = s;
}
