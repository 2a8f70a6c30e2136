// grid: 8  block: 32
// args: [{"type": "u64", "size": 8, "fill": 0}, {"name": "y", "type": "i32", "size": 8, "expect": [0, 0, 1, 3, 6, 10, 15, 21]}]
// Value and state are one word: no other data, no fence.
__global__ void scan(unsigned long long* prefix, int* y) {
  if (threadIdx.x) return;
  unsigned long long seen = 0;
  if (blockIdx.x)
    while (!(seen >> 32)) asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(seen) : "l"(prefix + blockIdx.x - 1));
  const unsigned before = seen;
  const unsigned long long mine = 1ull << 32 | (before + blockIdx.x);
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(prefix + blockIdx.x), "l"(mine));
  y[blockIdx.x] = before;
}
