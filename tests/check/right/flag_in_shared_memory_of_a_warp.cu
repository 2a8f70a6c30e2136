// grid: 1  block: 64
// args: [{"name": "x", "type": "i32", "size": 64, "fill": "iota"}, {"name": "y", "type": "i32", "size": 64}]
__global__ void search(const int* x, int* y) {
  __shared__ int found[2];
  const int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
  if (lane == 0) found[warp] = -1;
  __syncwarp();
  if (x[threadIdx.x] % 32 == 17) found[warp] = lane;
  __syncwarp();
  y[threadIdx.x] = found[warp];
}
