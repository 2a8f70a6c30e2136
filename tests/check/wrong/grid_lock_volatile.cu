// grid: 2  block: 32
// args: [{"type": "i32", "size": 1, "fill": 0}, {"type": "i32", "size": 1, "fill": 0}]
// finds: race at 8
// Even with a fence on one side: the other side has none, and the turns are volatile.
__global__ void turns(volatile int* turn, int* y) {
  if (threadIdx.x) return;
  while (*turn != blockIdx.x) __nanosleep(20);
  *y += 1;
  *turn = blockIdx.x + 1;
}
