// grid: 1  block: 256
// args: [{"name": "x", "type": "f32", "size": 2560, "fill": "random"}, {"name": "y", "type": "f32", "size": 256}, {"name": "n", "type": "i32", "value": 10}]
// finds: race at 12, race at 13
// Each turn needs a barrier between the store and the load of another warp's element: volatile orders nothing.
__global__ void k(const float* x, float* y, int n) {
  volatile __shared__ float s[256];
  const int t = threadIdx.x;
  float sum = 0;
  s[t] = 0;
  __syncthreads();
  for (int i = 0; i < n; ++i) {
    s[t] = x[i * 256 + t];
    sum += s[255 - t];
    __syncthreads();
  }
  y[t] = sum;
}
