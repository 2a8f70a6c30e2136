// Each lane adds to one word of device memory that all share, or to its own.
// grid: 432  block: 256  device: a100-sxm-80
// args: [{"name": "x", "type": "f32", "size": 110592}, {"name": "y", "type": "f32", "size": 110592}]
// slow: -DWORDS=1u  fast: -DWORDS=110592u  gain: 3
__global__ void sum(const float* x, float* y) {
  const unsigned i = blockIdx.x * 256 + threadIdx.x;
  atomicAdd(&y[i % WORDS], x[i]);
}
