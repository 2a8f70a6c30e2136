// grid: 1  block: 64
// args: [{"type": "f32", "size": 64}, {"type": "f32", "size": 64}]
// finds: uninitialised at 5
__global__ void add_one(const float* x, float* y) {
  y[threadIdx.x] = x[threadIdx.x] + 1.0f;
}
