// grid: 6  block: 64
// args: [{"type": "f32", "size": 64, "fill": "iota"}, {"name": "y", "type": "f32", "size": 384, "fill": 1, "expect": 2017}]
__global__ void scale(float* table, float* y) {
  float sum = y[blockIdx.x * 64 + threadIdx.x];
  for (int i = 0; i < 64; ++i) sum += table[i];
  y[blockIdx.x * 64 + threadIdx.x] = sum;
}
