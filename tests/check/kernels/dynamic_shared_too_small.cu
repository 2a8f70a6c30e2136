// grid: 1  block: 64  smem: 128
// args: [{"type": "i32", "size": 64}]
// finds: out-of-bounds at 6, out-of-bounds at 8
__global__ void reverse(int* y) {
  extern __shared__ int part[];
  part[threadIdx.x] = threadIdx.x;
  __syncthreads();
  y[threadIdx.x] = part[63 - threadIdx.x];
}
