// grid: 1  block: 64
// args: [{"type": "i32", "size": 32, "fill": "iota"}, {"type": "i32", "size": 32, "expect": "iota"}]
// with named_barriers_too_few: deadlock
__global__ void hand_over(const int* x, int* y) {
  __shared__ int box[32];
  const int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    box[lane] = x[lane];
    asm volatile("bar.arrive 1, 64;" ::: "memory");
    // edit named_barriers_too_few:
  } else {
    asm volatile("bar.sync 1, 64;" ::: "memory");
    y[lane] = box[lane];
  }
}
