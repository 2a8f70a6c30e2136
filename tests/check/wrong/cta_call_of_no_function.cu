// A call through a table with an entry that nobody has set.
// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 32}, {"type": "i32", "value": 1}]
// finds: bad-branch at 11
using Step = int (*)(int);
__device__ __noinline__ int twice(int a) { return 2 * a; }
__device__ __noinline__ int minus(int a) { return -a; }
__device__ Step table[3] = {twice, minus};

__global__ void calls(int* y, int all) {
  y[threadIdx.x] = table[all * threadIdx.x % 3](threadIdx.x);
}
