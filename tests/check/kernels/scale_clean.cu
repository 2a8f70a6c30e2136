// grid: 4  block: 256
// args: [{"name": "x", "type": "f32", "size": 1000, "fill": "iota", "expect": "iota"}, {"type": "f32", "value": 1}, {"type": "i32", "value": 1000}]
// with scale_no_tail_guard: out-of-bounds at 6
__global__ void scale(float* x, float factor, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= factor;
  // edit scale_no_tail_guard: x[i] *= factor;
}
