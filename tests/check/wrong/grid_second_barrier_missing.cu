// grid: 4  block: 32
// args: [{"type": "u32", "size": 1, "fill": 0}, {"type": "i32", "size": 4}, {"type": "i32", "size": 4}]
// finds: race
// The first barrier orders the first round. In the second, a block overwrites its box while its neighbour reads.
__device__ void meet(unsigned* arrived, unsigned wanted) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(arrived, 1);
    while (*static_cast<volatile unsigned*>(arrived) < wanted) __nanosleep(20);
    __threadfence();
  }
  __syncthreads();
}
__global__ void rounds(unsigned* arrived, int* box, int* y) {
  int v = blockIdx.x;
  if (threadIdx.x == 0) box[blockIdx.x] = v;
  meet(arrived, gridDim.x);
  v += box[(blockIdx.x + 1) % gridDim.x];
  if (threadIdx.x == 0) box[blockIdx.x] = v;
  y[blockIdx.x] = v;
}
