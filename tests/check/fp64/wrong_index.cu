// grid: 1  block: 4
// args: [{"name": "x", "type": "f32", "size": 4, "values": [0.1, 0.2, 0.3, 0.4]}, {"name": "y", "type": "f32", "size": 4, "expect": [0.01, 0.04, 0.09, 0.16], "relative_tolerance": 1e-6}]
__global__ void squares(const float* x, float* y) {
  y[threadIdx.x] = x[threadIdx.x] * x[threadIdx.x == 3 ? 2 : threadIdx.x];
}
