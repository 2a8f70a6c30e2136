// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 32}, {"name": "x", "type": "f32", "size": 32, "fill": 1}, {"name": "z", "type": "f32", "size": 32}]
__global__ void copy(int* y, const float* x, float* z) {
  y[threadIdx.x] = threadIdx.x * 3;
  z[threadIdx.x] = x[threadIdx.x];
}
