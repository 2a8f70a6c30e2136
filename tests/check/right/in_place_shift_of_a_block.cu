// grid: 2  block: 64
// args: [{"name": "x", "type": "i32", "size": 128, "fill": "iota"}]
__global__ void rotate(int* x) {
  int* mine = x + blockIdx.x * 64;
  const int v = mine[(threadIdx.x + 1) % 64];
  __syncthreads();
  mine[threadIdx.x] = v;
}
