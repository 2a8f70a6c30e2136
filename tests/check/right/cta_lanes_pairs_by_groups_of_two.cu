// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 64}]
__global__ void k(int* y) {
  __shared__ int s[32];
  const int t = threadIdx.x;
  const unsigned pair = 3u << (t & ~1);
  s[t] = t;
  __syncwarp(pair);
  const int other = s[t ^ 1];
  __syncwarp(pair);
  s[t ^ 1] = other + 1;
  __syncwarp(pair);
  y[t] = s[t];
}
