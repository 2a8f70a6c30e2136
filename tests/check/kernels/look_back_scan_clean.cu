// grid: 6  block: 32
// args: [{"type": "i32", "size": 192, "fill": 1}, {"type": "u64", "size": 6, "fill": 0}, {"name": "y", "type": "i32", "size": 192, "expect": "iota"}]
// leaves open: orders
__global__ void scan(const int* x, volatile unsigned long long* prefix, int* y) {
  const int t = threadIdx.x, own = x[blockIdx.x * 32 + t];
  int v = own;
  for (int step = 1; step < 32; step *= 2) {
    const int other = __shfl_up_sync(0xffffffffu, v, step);
    if (t >= step) v += other;
  }
  int before = 0;
  if (t == 31) {
    unsigned long long seen = 1ull << 32;
    if (blockIdx.x > 0) do seen = prefix[blockIdx.x - 1]; while (seen >> 32 == 0);
    before = static_cast<int>(seen);
    prefix[blockIdx.x] = 1ull << 32 | static_cast<unsigned>(before + v);
  }
  before = __shfl_sync(0xffffffffu, before, 31);
  y[blockIdx.x * 32 + t] = before + v - own;
}
