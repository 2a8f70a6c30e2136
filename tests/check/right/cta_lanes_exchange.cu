// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 64}]
// finds: nothing
__global__ void k(int* y) {
  __shared__ int s[32];
  s[threadIdx.x] = threadIdx.x;
  __syncwarp();
  y[threadIdx.x] = s[31 - threadIdx.x];
}
