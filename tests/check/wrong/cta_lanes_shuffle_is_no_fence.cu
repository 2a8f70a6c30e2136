// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 64}]
// finds: race at 9
__global__ void k(int* y) {
  __shared__ int s[32];
  const int t = threadIdx.x;
  s[t] = t;
  const int next = __shfl_sync(~0u, t + 1, t ^ 1);
  y[t] = s[t ^ 1] + next;
}
