// grid: 2  block: 32
// args: [{"type": "i32", "size": 1, "fill": 0}, {"type": "i32", "size": 32}, {"type": "i32", "size": 32}]
// finds: race at 12
__global__ void hand_over(volatile int* flag, int* box, int* y) {
  if (blockIdx.x == 0) {
    box[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) *flag = 1;
  } else {
    while (*flag == 0) {
    }
    y[threadIdx.x] = box[threadIdx.x];
  }
}
