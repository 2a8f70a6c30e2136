// grid: 1  block: 64  smem: 256
// args: [{"name": "y", "type": "f32", "size": 64}]
// finds: out-of-array at 9
__global__ void shift(float* y) {
  extern __shared__ float a[];
  __shared__ float sums[64];
  sums[threadIdx.x] = 0, a[threadIdx.x] = 1;
  __syncthreads();
  const float before = a[(int)threadIdx.x - 1];
  y[threadIdx.x] = before + sums[threadIdx.x];
}
