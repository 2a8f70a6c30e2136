// grid: 1  block: 64
// args: [{"name": "y", "type": "i32", "size": 64, "expect": 3}]
__global__ void two(int* y) {
  __shared__ int a[64], b[128];
  int* now = threadIdx.x < 32 ? a : b + 64;
  int* next = threadIdx.x < 32 ? b + 64 : a;
  for (int step = 0; step < 3; ++step) {
    now[threadIdx.x] = step + 1;
    int* other = now;
    now = next, next = other;
  }
  y[threadIdx.x] = next[threadIdx.x];
}
