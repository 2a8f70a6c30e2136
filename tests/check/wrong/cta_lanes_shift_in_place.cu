// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 64}]
// finds: race at 10
__global__ void k(int* y) {
  __shared__ int s[33];
  s[threadIdx.x + 1] = threadIdx.x;
  if (threadIdx.x == 0) s[0] = 0;
  __syncwarp();
  const int left = s[threadIdx.x];
  s[threadIdx.x + 1] += left;
  __syncwarp();
  y[threadIdx.x] = s[threadIdx.x + 1];
}
