// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 64}]
// finds: race at 8
__global__ void k(int* y) {
  __shared__ int s[32];
  const int t = threadIdx.x;
  s[t] = t;
  if (__any_sync(~0u, t > 3)) y[t] = s[t ^ 1];
}
