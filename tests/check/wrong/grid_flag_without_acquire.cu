// grid: 2  block: 32
// args: [{"type": "i32", "size": 32}, {"type": "i32", "size": 1, "fill": 0}, {"type": "i32", "size": 32}]
// finds: race at 12
__global__ void pass(int* box, volatile int* ready, int* y) {
  if (blockIdx.x == 0) {
    box[threadIdx.x] = threadIdx.x;
    __threadfence();
    __syncwarp();
    if (threadIdx.x == 0) *ready = 1;
  } else {
    while (*ready == 0) __nanosleep(20);
    y[threadIdx.x] = box[threadIdx.x];
  }
}
