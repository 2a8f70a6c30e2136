// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 64}]
__global__ void k(int* y) {
  __shared__ short s[64];
  const int t = threadIdx.x;
  s[2 * t] = t;
  s[2 * t + 1] = 0;
  y[t] = *reinterpret_cast<int*>(&s[2 * t]);
}
