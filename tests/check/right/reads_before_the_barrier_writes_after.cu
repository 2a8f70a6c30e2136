// grid: 1  block: 128
// args: [{"name": "x", "type": "f32", "size": 128, "fill": 1, "expect": 1}]
__global__ void smooth(float* x) {
  for (int round = 0; round < 5; ++round) {
    const int i = threadIdx.x, left = i ? i - 1 : 0, right = i < 127 ? i + 1 : 127;
    const float v = 0.25f * x[left] + 0.5f * x[i] + 0.25f * x[right];
    __syncthreads();
    x[i] = v;
    __syncthreads();
  }
}
