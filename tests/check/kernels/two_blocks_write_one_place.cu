// grid: 2  block: 32
// args: [{"type": "i32", "size": 32}]
// finds: race at 5
__global__ void overlap(int* y) {
  y[threadIdx.x] = blockIdx.x;
}
