// grid: 1  block: 64
// args: [{"type": "i32", "size": 1}]
// finds: deadlock at 9
__global__ void wait(int* y) {
  __shared__ int flag;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (threadIdx.x == 32)
    while (*static_cast<volatile int*>(&flag) == 0) {
    }
  if (threadIdx.x == 0) *y = 1;
}
