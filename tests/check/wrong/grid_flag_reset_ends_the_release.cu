// grid: 3  block: 32
// args: [{"type": "i32", "size": 1}, {"type": "i32", "size": 1, "fill": 0}, {"type": "i32", "size": 1}]
// finds: race at 16
// shown-by: some
// Block 1 stores to the flag itself, which is no read-modify-write: what block 0 released ends there, unless block 2 saw the 1 before.
__global__ void pass(int* box, volatile int* flag, int* y) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    *box = 7;
    __threadfence();
    *flag = 1;
  } else {
    while (*flag < blockIdx.x) __nanosleep(20);
    if (blockIdx.x == 1) *flag = 2;
    __threadfence();
    if (blockIdx.x == 2) *y = *box;
  }
}
