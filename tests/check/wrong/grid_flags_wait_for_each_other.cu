// grid: 2  block: 32
// args: [{"type": "i32", "size": 2, "fill": 0}]
// finds: deadlock at 6
__global__ void wait(volatile int* flag) {
  if (threadIdx.x) return;
  while (flag[1 - blockIdx.x] == 0) __nanosleep(20);
  flag[blockIdx.x] = 1;
}
