// FP64 and FP32 on a GPU with 2 lanes for FP64 and 128 for FP32.
// grid: 492  block: 128  device: rtx-3090
// args: [{"name": "y", "type": "f64", "size": 62976}]
// slow: -DTYPE=double  fast: -DTYPE=float  gain: 8
__global__ void poly(double* y) {
  TYPE a = threadIdx.x, b = blockIdx.x;
#pragma unroll 16
  for (int k = 0; k < 128; ++k) a = a * TYPE(0.5) + TYPE(1), b = b * TYPE(0.25) + TYPE(2);
  y[blockIdx.x * blockDim.x + threadIdx.x] = a + b;
}
