// grid: 5  block: 32
// args: [{"type": "i32", "size": 4}, {"type": "u8", "size": 4, "fill": 0}, {"name": "y", "type": "i32", "size": 1, "expect": 10}]
// Four flags in one word.
__global__ void pass(int* box, volatile unsigned char* ready, int* y) {
  if (threadIdx.x) return;
  if (blockIdx.x < 4) {
    box[blockIdx.x] = blockIdx.x + 1;
    __threadfence();
    ready[blockIdx.x] = 1;
  } else {
    int sum = 0;
    for (int i = 0; i < 4; ++i) {
      while (ready[i] == 0) __nanosleep(20);
      __threadfence();
      sum += box[i];
    }
    *y = sum;
  }
}
