// grid: 1  block: 32
// args: [{"name": "x", "type": "i32", "size": 64, "fill": "iota"}, {"name": "y", "type": "i32", "size": 64}]
__global__ void k(const int* x, int* y) {
  __shared__ int s[32];
  const int t = threadIdx.x;
  if (x[t] % 2) {
    s[t] = 1;
  } else {
    s[t] = 2;
  }
  __syncwarp();
  y[t] = s[t ^ 1];
}
