// grid: 1  block: 64
// args: [{"name": "y", "type": "f32", "size": 64}]
// finds: out-of-array at 8
__global__ void two(float* y) {
  __shared__ float a[64], b[64];
  a[threadIdx.x] = 1, b[threadIdx.x] = 2;
  __syncthreads();
  y[threadIdx.x] = a[threadIdx.x + 1] + b[threadIdx.x];
}
