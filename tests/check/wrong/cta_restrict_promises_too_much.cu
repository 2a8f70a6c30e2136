// grid: 2  block: 32
// args: [{"name": "x", "type": "f32", "size": 64, "fill": 3}, {"type": "f32", "buffer": "x"}]
// finds: race
__global__ void add(const float* __restrict__ x, float* __restrict__ y) {
  const int i = blockIdx.x * 32 + threadIdx.x;
  y[i] = x[i] + 1;  // the caller passes one buffer twice
}
