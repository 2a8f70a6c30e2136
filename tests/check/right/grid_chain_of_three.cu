// grid: 3  block: 32
// args: [{"type": "i32", "size": 1}, {"type": "i32", "size": 2, "fill": 0}, {"name": "y", "type": "i32", "size": 1, "expect": 7}]
// Order is transitive: block 2 never meets block 0.
__global__ void pass(int* box, volatile int* flag, int* y) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) *box = 7;
  if (blockIdx.x) while (flag[blockIdx.x - 1] == 0) __nanosleep(20);
  __threadfence();
  if (blockIdx.x < 2) flag[blockIdx.x] = 1;
  if (blockIdx.x == 2) *y = *box;
}
