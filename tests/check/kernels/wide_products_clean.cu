// grid: 1  block: 64
// args: [{"name": "y", "type": "u64", "size": 64, "expect": "iota"}]
__global__ void product(unsigned long long* y) {
  const unsigned __int128 t = threadIdx.x, big = (t + 1) << 90;
  y[threadIdx.x] = static_cast<unsigned long long>(big * 1000003 / 1000003 >> 90) - 1 + static_cast<unsigned long long>(big % 1);
}
