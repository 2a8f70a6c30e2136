// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 64}]
// finds: race at 12
__global__ void k(int* y) {
  __shared__ int s[32];
  const int t = threadIdx.x;
  if (t < 16) {
    s[t] = t;
  } else {
    s[t] = -t;
  }
  y[t] = s[(t + 16) % 32];
}
