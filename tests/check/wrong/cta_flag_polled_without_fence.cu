// grid: 1  block: 64
// args: [{"name": "y", "type": "i32", "size": 64}]
// finds: race at 17
__global__ void k(int* y) {
  __shared__ int data[32];
  __shared__ volatile int ready;
  const int t = threadIdx.x;
  if (t == 0) ready = 0;
  __syncthreads();
  if (t >= 32) {
    data[t - 32] = t;
    __syncwarp();
    if (t == 32) ready = 1;
  } else {
    while (ready == 0) {
    }
    y[t] = data[t];
  }
}
