// grid: 1  block: 64
// args: [{"name": "y", "type": "i32", "size": 64}]
__global__ void k(int* y) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  s[t] = t;
  asm volatile("bar.sync %0, 32;" ::"r"(1 + t / 32) : "memory");
  y[t] = s[t ^ 31];
}
