// The second file of runtime_program.cu: names in it are its own.
#include <cuda_runtime.h>

namespace {
__constant__ int factors;
__global__ void scale(int* x) { *x = *x * factors + 1; }
}  // namespace

int runtime_other(int value) {
  const int two = 2;
  int* x = nullptr;
  cudaMalloc(&x, sizeof value);
  cudaMemcpy(x, &value, sizeof value, cudaMemcpyHostToDevice);
  cudaMemcpyToSymbol(factors, &two, sizeof two);
  scale<<<1, 1>>>(x);
  cudaMemcpy(&value, x, sizeof value, cudaMemcpyDeviceToHost);
  cudaFree(x);
  return value;
}
