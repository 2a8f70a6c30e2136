// grid: 3  block: 32
// args: [{"type": "i32", "size": 32}, {"type": "i32", "size": 1, "fill": 0}, {"name": "y", "type": "i32", "size": 64, "expect": 5}]
// finds: nothing
__global__ void pass(int* box, volatile int* ready, int* y) {
  if (blockIdx.x == 0) {
    box[threadIdx.x] = 5;
    __threadfence();
    __syncwarp();
    if (threadIdx.x == 0) *ready = 1;
  } else {
    while (*ready == 0) __nanosleep(20);
    __threadfence();
    y[blockIdx.x * 32 - 32 + threadIdx.x] = box[31 - threadIdx.x];
  }
}
