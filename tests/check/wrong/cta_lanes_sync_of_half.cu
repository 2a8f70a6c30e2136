// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 64}]
// finds: race at 9
__global__ void k(int* y) {
  __shared__ int s[32];
  const int t = threadIdx.x;
  s[t] = t;
  __syncwarp(t < 16 ? 0xffffu : 0xffff0000u);
  y[t] = s[t ^ 16];
}
