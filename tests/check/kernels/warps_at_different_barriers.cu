// grid: 1  block: 64
// args: [{"type": "i32", "size": 64}]
// finds: deadlock
__global__ void apart(int* y) {
  if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;");
  else asm volatile("bar.sync 2, 64;");
  y[threadIdx.x] = 1;
}
