// grid: 1  block: 64
// args: [{"name": "y", "type": "i32", "size": 64}]
__global__ void k(int* y) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  s[t] = t;
  s[t] += 2;
  s[t] = s[t] * s[t];
  y[t] = s[t];
}
