// grid: 1  block: 64
// args: [{"name": "data", "type": "i32", "size": 1}, {"name": "y", "type": "i32", "size": 1, "expect": [7]}]
// finds: nothing
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
    y[0] = data[0];
  }
}
