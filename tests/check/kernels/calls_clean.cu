// grid: 1  block: 64
// args: [{"name": "y", "type": "i64", "size": 64, "expect": "iota"}]
__device__ __noinline__ long long add(long long a, int b, short c, unsigned char d) {
  if (a > 40) return a + b;
  return a + b + c - d;
}
__device__ __noinline__ long long times(int n, int step) {
  long long sum = 0;
  for (int i = 0; i < n; ++i) sum = add(sum, step, 3, 3);
  return sum;
}
__global__ void count(long long* y) {
  long long v;
  if (threadIdx.x % 3 == 0) v = times(threadIdx.x, 1);
  else v = add(threadIdx.x, 0, 1, 1);
  y[threadIdx.x] = v;
}
