// grid: 2  block: 64
// args: [{"name": "x", "type": "f32", "size": 128, "fill": 1}, {"name": "y", "type": "f32", "size": 128}]
// finds: race at 7
__global__ void twice(const float* x, float* y) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = x[i];
  y[i] = 2 * __ldg(y + i);
}
