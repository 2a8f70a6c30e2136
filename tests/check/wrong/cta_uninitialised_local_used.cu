// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 64}, {"type": "i32", "value": 6}]
// finds: uninitialised at 7
__global__ void k(int* y, int n) {
  int a[8];
  for (int i = 0; i < n; ++i) a[i] = i;
  y[threadIdx.x] = a[threadIdx.x % 8];
}
