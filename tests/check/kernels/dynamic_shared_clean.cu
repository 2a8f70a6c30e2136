// grid: 1  block: 64  smem: 256
// args: [{"type": "i32", "size": 64}]
// with dynamic_shared_too_small: out-of-bounds at 7, out-of-bounds at 9
//   smem: 128
__global__ void reverse(int* y) {
  extern __shared__ int part[];
  part[threadIdx.x] = threadIdx.x;
  __syncthreads();
  y[threadIdx.x] = part[63 - threadIdx.x];
}
