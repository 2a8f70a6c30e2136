// grid: 1  block: 64
// args: [{"name": "x", "type": "i32", "size": 1}]
// finds: race at 8, deadlock at 9
__global__ void k(int* x) {
  __shared__ volatile int flag;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  x[0] = threadIdx.x / 32;
  while (flag == 0) {}
}
