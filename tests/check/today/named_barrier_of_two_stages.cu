// Two warpgroups take turns: the first fills a buffer for the second and refills it when the second has read it.
// Each direction has a barrier of its own.
// grid: 1  block: 256
// args: [{"type": "i32", "size": 512, "fill": 1}, {"name": "y", "type": "i32", "size": 128, "expect": 4}]
// with named_barrier_of_two_stages: barrier-order at 13, race at 21, race at 28
//   "Filled" and "read" use the same barrier, so the second barrier of a warpgroup may complete with the first one of
//   the other, and the two groups pass each other. The kind of vllm-project/vllm pull request 26026 (an arrival that
//   another use of the same barrier counts). PTX ISA, bar/barrier (barriers are reused after completion only).
constexpr int kFilled = 1, kRead = 2;
// edit named_barrier_of_two_stages: constexpr int kFilled = 1, kRead = 1;

__device__ void arrive(int barrier) { asm volatile("bar.arrive %0, 256;" ::"r"(barrier) : "memory"); }
__device__ void sync(int barrier) { asm volatile("bar.sync %0, 256;" ::"r"(barrier) : "memory"); }

__global__ void sum_rows(const int* x, int* y) {
  __shared__ int box[128];
  const int t = threadIdx.x % 128;
  if (threadIdx.x < 128) {
    for (int i = 0; i < 4; ++i) {
      if (i > 0) sync(kRead);
      box[t] = x[128 * i + t];
      arrive(kFilled);
    }
  } else {
    int sum = 0;
    for (int i = 0; i < 4; ++i) {
      sync(kFilled);
      sum += box[127 - t];
      if (i < 3) arrive(kRead);
    }
    y[t] = sum;
  }
}
