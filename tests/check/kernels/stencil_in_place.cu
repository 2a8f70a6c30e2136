// grid: 1  block: 64
// args: [{"name": "y", "type": "f32", "size": 64}]
// finds: race at 8
__global__ void smooth(float* y) {
  const int i = threadIdx.x;
  y[i] = i;
  __syncthreads();
  y[i] = 0.5f * (y[i] + y[(i + 1) % 64]);
}
