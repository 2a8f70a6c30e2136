// A warp fills a buffer of 128 numbers for four other warps, which wait at barrier 1.
// Both sides name all 160 threads.
// grid: 1  block: 160
// args: [{"type": "i32", "size": 128, "fill": 5}, {"name": "y", "type": "i32", "size": 128, "expect": 10}]
// finds: nothing
// Threads 0 to 127 read what threads 128 to 159 have loaded.
__global__ void twice(const int* x, int* y) {
  __shared__ int box[128];
  const int t = threadIdx.x;
  const bool reads = t < 128;
  if (reads) {
    asm volatile("bar.sync 1, 160;" ::: "memory");
    y[t] = 2 * box[127 - t];
  } else {
    for (int k = t - 128; k < 128; k += 32) {
      const int value = x[k];
      box[k] = value;
    }
    asm volatile("bar.arrive 1, 160;" ::: "memory");
  }
}
