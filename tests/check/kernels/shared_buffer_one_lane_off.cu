// grid: 1  block: 64  finds: race at 4, race at 5
// args: [{"name": "x", "type": "f32", "size": 65, "fill": "iota"}, {"name": "y", "type": "f32", "buffer": "x", "offset": 1}]
__global__ void copy(const float* x, float* y) {
  const float v = x[threadIdx.x];
  y[threadIdx.x] = v;
}
