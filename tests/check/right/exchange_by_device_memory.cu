// grid: 2  block: 128
// args: [{"name": "x", "type": "i32", "size": 256, "fill": "iota"}, {"name": "y", "type": "i32", "size": 256}]
__global__ void exchange(int* x, int* y) {
  int* mine = x + blockIdx.x * 128;
  mine[threadIdx.x] *= 3;
  __syncthreads();
  y[blockIdx.x * 128 + threadIdx.x] = mine[127 - threadIdx.x];
}
