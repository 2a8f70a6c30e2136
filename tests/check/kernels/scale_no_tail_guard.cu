// grid: 4  block: 256
// args: [{"name": "x", "type": "f32", "size": 1000, "fill": "iota"}, {"type": "f32", "value": 2}]
// finds: out-of-bounds at 6
__global__ void scale(float* x, float factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] *= factor;
}
