// grid: 4  block: 32  leaves open: orders
// args: [{"name": "state", "type": "u64", "size": 4, "fill": 0}, {"name": "y", "type": "u32", "size": 4, "expect": [1, 2, 3, 4]}]
__global__ void chain(unsigned long long* state, unsigned* y) {
  if (threadIdx.x != 0) return;
  unsigned before = 0;
  if (blockIdx.x > 0) {
    unsigned long long seen;
    while (!((seen = *reinterpret_cast<volatile unsigned long long*>(&state[blockIdx.x - 1])) >> 32)) {
    }
    before = static_cast<unsigned>(seen);
  }
  *reinterpret_cast<volatile unsigned long long*>(&state[blockIdx.x]) = 1ull << 32 | (before + 1);
  y[blockIdx.x] = before + 1;
}
