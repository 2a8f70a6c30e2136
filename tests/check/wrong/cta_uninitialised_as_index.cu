// grid: 1  block: 64
// args: [{"name": "y", "type": "i32", "size": 64}]
// finds: uninitialised at 7
__global__ void k(int* y) {
  __shared__ int index[64];
  __syncthreads();
  y[index[threadIdx.x] & 63] = 1;
}
