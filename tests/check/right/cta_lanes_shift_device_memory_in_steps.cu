// grid: 1  block: 32
// args: [{"name": "x", "type": "i32", "size": 33, "fill": 1}]
__global__ void k(int* x) {
  const int next = x[threadIdx.x + 1];
  __syncwarp();
  x[threadIdx.x] = next + 1;
}
