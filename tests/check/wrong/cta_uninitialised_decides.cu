// grid: 1  block: 64
// args: [{"name": "y", "type": "i32", "size": 64}]
// finds: uninitialised at 9
__global__ void k(int* y) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  if (t < 32) s[t] = t;
  __syncthreads();
  if (s[t] > 5) y[t] = 1;
}
