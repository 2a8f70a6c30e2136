// grid: 1  block: 64
// args: [{"name": "y", "type": "f32", "size": 64, "fill": 1}]
// finds: race at 8
__global__ void scale(float* y) {
  const float v = __ldg(y + (threadIdx.x + 1) % 64);
  __syncthreads();
  if (threadIdx.x < 8)
    y[threadIdx.x] = 2 * v;
}
