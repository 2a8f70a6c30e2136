// grid: 4  block: 32
// args: [{"type": "f32", "size": 129, "fill": "iota"}]
// finds: race at 6
__global__ void smooth(float* x) {
  const int i = blockIdx.x * 32 + threadIdx.x;
  x[i] = 0.5f * x[i] + 0.5f * x[i + 1];
}
