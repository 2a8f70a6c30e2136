// grid: 1  block: 64
// args: [{"name": "y", "type": "i32", "size": 64}]
// finds: race at 8, race at 9
__global__ void mixed(int* y) {
  __shared__ int count[64];
  count[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&count[(threadIdx.x + 32) % 64], 1);
  y[threadIdx.x] = count[threadIdx.x];
}
