// grid: 1  block: 1
// args: [{"name": "x", "type": "f32", "size": 4, "values": [4096.25, 4097.5, 4098.25, 4095.75]}, {"name": "y", "type": "f32", "size": 1, "expect": 0.98046875, "relative_tolerance": 1e-5}]
// The variance as a difference of two large means: what their roundings lose is most of the result.
__global__ void variance(const float* x, float* y) {
  float sum = 0, squares = 0;
  for (int i = 0; i < 4; ++i) {
    sum += x[i] / 4;
    squares += x[i] * x[i] / 4;
  }
  y[0] = squares - sum * sum;
}
