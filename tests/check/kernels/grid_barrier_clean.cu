// grid: 5  block: 64
// args: [{"type": "u32", "size": 1, "fill": 0, "expect": 15}, {"type": "i32", "size": 320}, {"name": "y", "type": "i32", "size": 320, "expect": 3}]
// leaves open: orders
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
  const int n = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
  int v = 0;
  for (int round = 0; round < 3; ++round) {
    if (round == 0) box[i] = 1;
    meet(arrived, (round + 1) * gridDim.x);
    v += box[(i + 64) % n];
  }
  y[i] = v;
}
