// The lanes of a warp go both ways at each step, and few warps are there to run meanwhile.
// grid: 108  block: 64  device: a100-sxm-80
// args: [{"name": "x", "type": "i32", "size": 6912, "fill": "iota"}, {"name": "y", "type": "i32", "size": 6912}]
// limiter: branches
__global__ void steps(const int* x, int* y) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned v = x[i] + 27u;
#pragma unroll 1
  for (int k = 0; k < 128; ++k) {
    if (v & 1) {  // <- here
      asm volatile("mad.lo.u32 %0, %0, 3, 1;" : "+r"(v));  // <- here
      __threadfence_block();  // <- here
    } else {  // <- here
      asm volatile("shr.u32 %0, %0, 1;" : "+r"(v));  // <- here
    }  // <- here
  }
  y[i] = v;
}
