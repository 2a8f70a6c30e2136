// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 64}]
__global__ void k(int* y) {
  const int t = threadIdx.x;
  y[t] = t;
  __syncwarp();
  const int v = y[t ^ 1];
  __syncwarp();
  y[t ^ 2] = v;
}
