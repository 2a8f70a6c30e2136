// grid: 1  block: 32
// args: [{"name": "x", "type": "f32", "size": 32, "fill": "iota"}, {"name": "y", "type": "f32", "size": 32, "expect": "iota"}]
// finds: wrong y[1] is 2, 1 was expected
__global__ void twice(const float* x, float* y) {
  y[threadIdx.x] = 2.0f * x[threadIdx.x];
}
