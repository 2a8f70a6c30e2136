// A warp fills a buffer of 128 numbers for four other warps, which wait at barrier 1.
// Both sides name all 160 threads.
// grid: 1  block: 160
// args: [{"type": "i32", "size": 128, "fill": 5}, {"name": "y", "type": "i32", "size": 128, "expect": 10}]
// Threads 0 to 127 read what threads 128 to 159 have loaded.
// with named_barrier_counts_only_the_arrivals: bad-barrier at 23
//   bar.arrive names the 32 threads that arrive, but the number is that of all threads that arrive or wait: it
//   completes the barrier of 32 threads at once and no longer belongs to that of the four warps.
//   facebookexperimental/triton pull request 2901, Dao-AILab/flash-attention issues 1370 and 1389. PTX ISA, bar/barrier
//   ("thread count").
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
    // edit named_barrier_counts_only_the_arrivals: asm volatile("bar.arrive 1, 32;" ::: "memory");
  }
}
