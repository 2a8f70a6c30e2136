// grid: 1  block: 128
// args: [{"type": "f32", "size": 512, "fill": 1}, {"type": "f32", "size": 128, "expect": 4}]
// with double_buffer_one_barrier: race at 11, race at 13
__global__ void stream(const float* x, float* y) {
  __shared__ float tile[2][128];
  const int t = threadIdx.x;
  float sum = 0;
  for (int i = 0; i < 4; ++i) {
    float* const slot = tile[i % 2];
    // edit double_buffer_one_barrier: i % 2 => 0
    slot[t] = x[128 * i + t];
    __syncthreads();
    sum += slot[(t + 64) % 128];
  }
  y[t] = sum;
}
