// grid: 2  block: 32
// args: [{"type": "i32", "size": 2}, {"type": "i32", "size": 2, "fill": 0}, {"name": "y", "type": "i32", "size": 1, "expect": 3}]
// One fence serves both flags: all that was written lies before it.
__global__ void pass(int* box, volatile int* ready, int* y) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    box[0] = 1, box[1] = 2;
    __threadfence();
    ready[0] = 1;
    ready[1] = 1;
  } else {
    while (ready[0] == 0) __nanosleep(20);
    while (ready[1] == 0) __nanosleep(20);
    __threadfence();
    *y = box[0] + box[1];
  }
}
