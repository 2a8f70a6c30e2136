// grid: 1  block: 64  smem: 256
// args: [{"type": "i32", "size": 64}]
// finds: nothing
__global__ void reverse(int* y) {
  extern __shared__ int part[];
  part[threadIdx.x] = threadIdx.x;
  __syncthreads();
  y[threadIdx.x] = part[63 - threadIdx.x];
}
