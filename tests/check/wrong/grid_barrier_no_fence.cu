// grid: 4  block: 32
// args: [{"type": "u32", "size": 1, "fill": 0}, {"type": "i32", "size": 4}, {"type": "i32", "size": 4}]
// finds: race at 11
__global__ void meet(unsigned* arrived, int* box, int* y) {
  if (threadIdx.x == 0) {
    box[blockIdx.x] = blockIdx.x;
    atomicAdd(arrived, 1);
    while (*static_cast<volatile unsigned*>(arrived) < gridDim.x) __nanosleep(20);
  }
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = box[(blockIdx.x + 1) % gridDim.x];
}
