// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 64}]
__global__ void k(int* y) {
  __shared__ int s[32];
  const int t = threadIdx.x;
  const unsigned half = t < 16 ? 0xffffu : 0xffff0000u;
  s[t] = t;
  __syncwarp(half);
  y[t] = s[t ^ 8];
  __syncwarp(half);
  s[t ^ 1] = y[t];
  __syncwarp(half);
  y[t] = s[t];
}
