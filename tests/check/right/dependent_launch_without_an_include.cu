// grid: 2  block: 32
// args: [{"name": "y", "type": "i32", "size": 64, "expect": 1}]
__global__ void k(int* y) {
  cudaGridDependencySynchronize();
  y[blockIdx.x * blockDim.x + threadIdx.x] = 1;
  cudaTriggerProgrammaticLaunchCompletion();
}
