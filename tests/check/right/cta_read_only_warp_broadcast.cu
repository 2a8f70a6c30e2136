// grid: 1  block: 64
// args: [{"name": "y", "type": "i32", "size": 64}]
__global__ void k(int* y) {
  __shared__ int n;
  if (threadIdx.x == 0) n = 7;
  __syncthreads();
  int sum = 0;
  for (int i = 0; i < 4; ++i) sum += n;
  __syncthreads();
  if (threadIdx.x == 63) n = sum;
  __syncthreads();
  y[threadIdx.x] = n;
}
