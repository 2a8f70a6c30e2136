// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 32}]
// finds: uninitialised at 9
__device__ __noinline__ int* table(int n) {
  int t[8];
  for (int i = 0; i < 8; ++i) t[i] = i * n;
  return t;
}
__device__ __noinline__ int second(const int* t, int i) { return t[i & 7]; }
__global__ void local(int* y) {
  const int* t = table(threadIdx.x);
  y[threadIdx.x] = second(t, threadIdx.x);
}
