// grid: 1  block: 64
// args: [{"name": "x", "type": "i32", "size": 64}, {"name": "y", "type": "i32", "size": 64}]
// finds: misaligned at 6, out-of-bounds at 7
__global__ void k(int* x, int* y) {
  const int t = threadIdx.x;
  *reinterpret_cast<int*>(reinterpret_cast<char*>(x) + 4 * t + (t == 5)) = t;
  y[t * 2] = 1;
}
