// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 64}]
// finds: race at 8
__global__ void k(int* y) {
  __shared__ int s[32];
  s[threadIdx.x] = threadIdx.x;
  // no __syncwarp
  y[threadIdx.x] = s[31 - threadIdx.x];
}
