// grid: 1  block: 64
// args: [{"name": "x", "type": "i32", "size": 1, "fill": 3}, {"name": "y", "type": "i32", "size": 1, "expect": [3]}]
// with cta_volatile_read_then_plain_write: race at 8
__global__ void k(int* x, int* y) {
  if (threadIdx.x == 0) y[0] = *(volatile int*)x;
  __syncthreads();
  // edit cta_volatile_read_then_plain_write:
  if (threadIdx.x == 32) x[0] = 4;
}
