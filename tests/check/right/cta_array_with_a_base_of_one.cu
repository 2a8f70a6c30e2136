// grid: 1  block: 64
// args: [{"name": "y", "type": "i32", "size": 64, "expect": 64}]
__global__ void halo(int* y) {
  __shared__ int before[8], a[66], after[8];
  int* inner = a + 1;  // inner[-1] and inner[64] are the halo
  before[threadIdx.x % 8] = after[threadIdx.x % 8] = 5;
  inner[threadIdx.x] = threadIdx.x;
  if (threadIdx.x == 0) inner[-1] = -1, inner[64] = 64;
  __syncthreads();
  const int x = threadIdx.x;
  y[x] = inner[x - 1] + inner[x + 1] - 2 * inner[x] + 64 * (before[0] == after[1]);
}
