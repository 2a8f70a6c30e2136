// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 32}]
// finds: uninitialised at 7
__global__ void k(int* y) {
  __shared__ volatile unsigned s[64];
  const int t = threadIdx.x;
  s[t + 32] = s[t] | 1;
  __syncwarp();
  y[t] = s[63 - t] & 1;
}
