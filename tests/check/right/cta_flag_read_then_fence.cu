// grid: 1  block: 64
// args: [{"name": "data", "type": "i32", "size": 1}, {"name": "y", "type": "i32", "size": 1, "expect": [7]}]
// leaves open: orders
// with cta_flag_read_without_fence: unfenced at 18
//   the load may come before the flag's
__global__ void k(int* data, int* y) {
  __shared__ volatile int ready;
  if (threadIdx.x == 0) ready = 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    data[0] = 7;
    __threadfence_block();
    ready = 1;
  } else if (threadIdx.x == 32) {
    while (!ready) {}
    __threadfence_block();
    // edit cta_flag_read_without_fence:
    y[0] = data[0];
  }
}
