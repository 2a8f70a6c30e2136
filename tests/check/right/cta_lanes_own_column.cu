// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 64}]
__global__ void k(int* y) {
  __shared__ int s[8][32];
  const int t = threadIdx.x;
  for (int i = 0; i < 8; ++i) s[i][t] = i * t;
  int sum = 0;
  for (int i = 7; i >= 0; --i) sum += s[i][t];
  y[t] = sum;
}
