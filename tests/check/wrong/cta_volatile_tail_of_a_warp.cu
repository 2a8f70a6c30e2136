// The last 32 sums of a reduction by `volatile` reads and writes, as before sm_70: the lanes of a warp need not run
// together, and nothing orders a lane's read after another lane's write.
// grid: 1  block: 64
// args: [{"name": "x", "type": "f32", "size": 64, "fill": 1}, {"name": "y", "type": "f32", "size": 1}]
// finds: race at 12, race at 13
__global__ void sum(const float* x, float* y) {
  __shared__ float part[64];
  part[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  if (threadIdx.x >= 32) return;
  volatile float* own = part + threadIdx.x;
  *own = *own + own[32] + own[16];
  *own = *own + own[8];
  __syncwarp();
  if (threadIdx.x == 0) y[0] = *own;
}
