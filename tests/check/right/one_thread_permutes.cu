// grid: 1  block: 32
// args: [{"name": "x", "type": "i32", "size": 32, "fill": "iota"}]
__global__ void reverse(int* x) {
  __shared__ int s[32];
  s[threadIdx.x] = x[threadIdx.x];
  __syncwarp();
  if (threadIdx.x == 0)
    for (int i = 0; i < 16; ++i) {
      const int v = s[i];
      s[i] = s[31 - i];
      s[31 - i] = v;
    }
  __syncwarp();
  x[threadIdx.x] = s[threadIdx.x];
}
