// grid: 1  block: 1
// args: [{"name": "x", "type": "f32", "size": 4, "values": [4096.25, 4097.5, 4098.25, 4095.75]}, {"name": "y", "type": "f32", "size": 1, "expect": 0.98046875, "relative_tolerance": 1e-5}]
// Divides by too few: wrong in double as well.
__global__ void variance(const float* x, float* y) {
  float mean = 0, sum = 0;
  for (int i = 0; i < 4; ++i) mean += x[i] / 4;
  for (int i = 0; i < 4; ++i) sum += (x[i] - mean) * (x[i] - mean);
  y[0] = sum / 3;
}
