extern __shared__ float shared[];
__device__ __noinline__ float f(float x) { return x < 0 ? -x : x; }
__global__ void k(const float* __restrict__ x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; // a comment { with a brace
  if (i < n) y[i] = f(x[i]);
}
