// grid: 4  block: 32
// args: [{"type": "i32", "size": 4}, {"type": "i32", "size": 4, "fill": 0}, {"type": "i32", "size": 4}]
// finds: race at 8
__global__ void scan(int* prefix, volatile int* ready, int* y) {
  if (threadIdx.x) return;
  int before = 0;
  while (blockIdx.x && !ready[blockIdx.x - 1]) __nanosleep(20);
  if (blockIdx.x) before = prefix[blockIdx.x - 1];
  prefix[blockIdx.x] = before + 1;
  y[blockIdx.x] = before;
  ready[blockIdx.x] = 1;
}
