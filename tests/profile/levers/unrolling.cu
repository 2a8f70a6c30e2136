// A loop of dependent additions waits for each load, or for eight at a time.
// grid: 108  block: 128  device: a100-sxm-80
// args: [{"name": "x", "type": "f32", "size": 3538944}, {"name": "y", "type": "f32", "size": 13824}]
// slow: -DUNROLL=1  fast: -DUNROLL=8  gain: 2
__global__ void sum(const float* x, float* y) {
  float s = 0;
#pragma unroll UNROLL
  for (unsigned i = 0; i < 256; ++i) s += x[blockIdx.x * 32768 + 128 * i + threadIdx.x];
  y[blockIdx.x * 128 + threadIdx.x] = s;
}
