// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 32, "expect": 28}]
__device__ __noinline__ void fill(int* t, int n) {
  int own[8];
  for (int i = 0; i < 8; ++i) own[i ^ (n & 1)] = i;
  for (int i = 0; i < 8; ++i) t[i] = own[i];
}
__global__ void local(int* y) {
  int t[8], sum = 0;
  fill(t, threadIdx.x);
  for (int i = 0; i < 8; ++i) sum += t[(i + threadIdx.x) & 7];
  y[threadIdx.x] = sum;
}
