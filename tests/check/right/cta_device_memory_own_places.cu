// grid: 1  block: 64
// args: [{"name": "y", "type": "i32", "size": 64}]
__global__ void k(int* y) {
  const int t = threadIdx.x;
  y[t] = t;
  y[t] += 1;
  __syncthreads();
  const int v = y[63 - t];
  __syncthreads();
  y[t] = v;
}
