// grid: 4  block: 32
// args: [{"type": "f32", "size": 32, "fill": 0}]
// finds: race at 5
__global__ void add(float* y) {
  y[threadIdx.x] += blockIdx.x + 1;
}
