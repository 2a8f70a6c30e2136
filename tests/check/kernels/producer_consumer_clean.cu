// grid: 1  block: 64
// args: [{"type": "i32", "size": 256, "fill": 1}, {"type": "i32", "size": 32, "expect": 8}]
__global__ void pipeline(const int* x, int* y) {
  __shared__ int box[2][32];
  const int lane = threadIdx.x % 32;
  int sum = 0;
  for (int i = 0; i < 8; ++i) {
    const int slot = i % 2;
    if (threadIdx.x < 32) {
      if (i >= 2) asm volatile("bar.sync %0, 64;" ::"r"(3 + slot) : "memory");
      box[slot][lane] = x[32 * i + lane];
      asm volatile("bar.arrive %0, 64;" ::"r"(1 + slot) : "memory");
    } else {
      asm volatile("bar.sync %0, 64;" ::"r"(1 + slot) : "memory");
      sum += box[slot][lane];
      if (i < 6) asm volatile("bar.arrive %0, 64;" ::"r"(3 + slot) : "memory");
    }
  }
  if (threadIdx.x >= 32) y[lane] = sum;
}
