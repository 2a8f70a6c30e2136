// grid: 1  block: 32
// args: [{"type": "f32", "size": 64, "fill": 1}, {"type": "f32", "size": 32}, {"type": "i32", "value": 100000}]
// finds: out-of-bounds at 6
__global__ void stride(const float* x, float* y, int pitch) {
  const int row = threadIdx.x * pitch * 1000;
  y[threadIdx.x] = x[row];
}
