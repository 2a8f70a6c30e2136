// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 64}]
__global__ void k(int* y) {
  __shared__ int n;
  n = blockDim.x * 2;
  y[threadIdx.x] = n;
}
