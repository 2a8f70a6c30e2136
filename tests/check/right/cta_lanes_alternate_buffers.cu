// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 64}]
__global__ void k(int* y) {
  __shared__ int s[2][32];
  const int t = threadIdx.x;
  int v = t;
  for (int i = 0; i < 8; ++i) {
    s[i % 2][t] = v;
    __syncwarp();
    v = s[i % 2][(t + 1) % 32] + 1;
  }
  y[t] = v;
}
