// grid: 1  block: 128
// args: [{"type": "f32", "size": 512, "fill": 1}, {"type": "f32", "size": 128}]
// finds: race at 9, race at 11
__global__ void stream(const float* x, float* y) {
  __shared__ float tile[128];
  const int t = threadIdx.x;
  float sum = 0;
  for (int i = 0; i < 4; ++i) {
    tile[t] = x[128 * i + t];
    __syncthreads();
    sum += tile[(t + 64) % 128];
  }
  y[t] = sum;
}
