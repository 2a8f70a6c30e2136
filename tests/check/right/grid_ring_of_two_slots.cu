// grid: 2  block: 64
// args: [{"type": "i32", "size": 128}, {"type": "i32", "size": 2, "fill": 0}, {"name": "y", "type": "i32", "size": 64, "expect": 28}]
// The consumer hands slots back, so the producer may overwrite what was read.
__global__ void ring(int* slots, volatile int* counts, int* y) {
  int sum = 0;
  for (int i = 0; i < 8; ++i) {
    if (threadIdx.x == 0) {
      if (blockIdx.x == 0) while (i - counts[1] >= 2) __nanosleep(20);
      else while (counts[0] <= i) __nanosleep(20);
      __threadfence();
    }
    __syncthreads();
    if (blockIdx.x == 0) slots[i % 2 * 64 + threadIdx.x] = i;
    else sum += slots[i % 2 * 64 + 63 - threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      counts[blockIdx.x] = i + 1;
    }
  }
  if (blockIdx.x) y[threadIdx.x] = sum;
}
