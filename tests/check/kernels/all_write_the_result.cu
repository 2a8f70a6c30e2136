// grid: 1  block: 64
// args: [{"name": "y", "type": "i32", "size": 1}]
// finds: race at 5
__global__ void last(int* y) {
  y[0] = threadIdx.x;
}
