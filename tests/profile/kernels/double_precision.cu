// FP64 on a GPU with 2 lanes for it.
// grid: 492  block: 128  device: rtx-3090
// args: [{"name": "y", "type": "f64", "size": 62976}, {"type": "f64", "value": 0.5}]
// limiter: throughput of the FP64 pipe
__global__ void poly(double* y, double p) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  double a = threadIdx.x, b = p;
#pragma unroll 16
  for (int k = 0; k < 128; ++k) a = a * p + 1, b = b * p + 2;  // <- here
  y[i] = a + b;
}
